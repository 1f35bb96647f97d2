#include "spec/memory/ledger.hpp"

#include <array>
#include <utility>

namespace assay::spec::memory {

std::string to_string(Purpose purpose) {
  constexpr std::array names = {"state", "inputs", "activations", "head", "temporaries"};
  return names[static_cast<std::size_t>(purpose)];
}

Tensor Ledger::make(const std::string& name, Purpose purpose, std::vector<std::int64_t> shape,
                    std::int64_t element_bytes) {
  Count bytes = element_bytes;
  for (const std::int64_t extent : shape) bytes = bytes * extent;
  Item& item = by_name_[name];
  if (item.count == 0) item = {name, purpose, std::move(shape), element_bytes, 0, {}};
  ++item.count;
  item.bytes += bytes;
  now_ += bytes;
  ++number_;
  if (now_ > most_) most_ = now_;
  if (now_ > peak_) {
    peak_ = now_;
    at_peak_ = moment_;
    peak_number_ = number_;
  }
  if (number_ == snapshot_) items_ = there();
  return {static_cast<const void*>(this), [this, &item, bytes](const void*) { release(item, bytes); }};
}

std::vector<Item> Ledger::there() const {
  std::vector<Item> items;
  for (const auto& [unused, item] : by_name_)
    if (item.count > 0) items.push_back(item);
  return items;
}

void Ledger::release(Item& item, const Count& bytes) {
  --item.count;
  item.bytes = item.bytes - bytes;
  now_ = now_ - bytes;
}

}  // namespace assay::spec::memory
