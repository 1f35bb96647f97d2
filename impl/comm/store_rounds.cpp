#include "impl/comm/store_rounds.hpp"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "spec/error.hpp"

namespace assay::impl {

namespace {
std::string with_length(const std::string& text) {
  const std::uint64_t length = text.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text;
}

std::vector<std::string> taken_apart(const std::string& all, std::size_t number) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size();) {
    std::uint64_t length = 0;
    const bool whole = all.size() - at >= sizeof length;
    if (whole) std::memcpy(&length, all.data() + at, sizeof length);
    at += sizeof length;
    if (!whole || length > all.size() - at) break;
    texts.push_back(all.substr(at, length));
    at += length;
  }
  if (texts.size() != number)
    throw std::runtime_error("ranks are out of step: " + std::to_string(number) + " give texts to a round, " +
                             std::to_string(texts.size()) +
                             " are found in it; a bug of this program, report it with the run's run.jsonl");
  return texts;
}
}  // namespace

StoreRounds::StoreRounds(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size)
    : store_(std::move(store)), name_(std::move(name)), rank_(rank), size_(size) {}

template <class Work>
auto StoreRounds::with_lost_peer_error(Work&& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    throw UserError(ExitCode::peer_lost,
                    "rank " + std::to_string(rank_) + " waited for all " + std::to_string(size_) +
                        " ranks at rank 0's store and did not find them: " + error.what() +
                        "; look at the first message of the others");
  }
}

std::string StoreRounds::joined(const std::string& mine, const Join& join) {
  begin();
  std::string result = size_ <= few ? join(from_each(mine)) : by_rank_0(mine, join);
  forget_last_round();
  return result;
}

std::vector<std::string> StoreRounds::all(const std::string& mine) {
  begin();
  const Join behind_each_other = [](const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += text;
    return all;
  };
  auto result = size_ <= few ? from_each(mine)
                             : taken_apart(by_rank_0(with_length(mine), behind_each_other),
                                           static_cast<std::size_t>(size_));
  forget_last_round();
  return result;
}

void StoreRounds::begin() {
  ++round_;
  last_keys_ = std::exchange(keys_, {});
}

/// Whoever has its result of a round knows that all have begun it, and so have theirs of the one before.
void StoreRounds::forget_last_round() {
  with_lost_peer_error([&] {
    for (const std::string& key : last_keys_) store_->deleteKey(key);
  });
}

std::vector<std::string> StoreRounds::from_each(const std::string& mine) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<std::size_t>(size_));
  for (int r = 0; r < size_; ++r) keys.push_back(key(std::to_string(r)));
  set(keys[static_cast<std::size_t>(rank_)], mine);
  return get(keys);
}

std::string StoreRounds::by_rank_0(const std::string& mine, const Join& join) {
  const std::string result = key("result");
  if (rank_ != 0) {
    set(key(std::to_string(rank_)), mine);
    return get({result}).front();
  }
  std::vector<std::string> others;
  others.reserve(static_cast<std::size_t>(size_));
  for (int r = 1; r < size_; ++r) others.push_back(key(std::to_string(r)));
  std::vector<std::string> texts = get(others);
  texts.insert(texts.begin(), mine);
  std::string all = join(texts);
  set(result, all);
  return all;
}

void StoreRounds::set(const std::string& key, const std::string& text) {
  keys_.push_back(key);
  with_lost_peer_error([&] { store_->set(key, std::vector<std::uint8_t>(text.begin(), text.end())); });
}

std::vector<std::string> StoreRounds::get(const std::vector<std::string>& keys) {
  if (keys.empty()) return {};
  return with_lost_peer_error([&] {
    std::vector<std::string> texts;
    for (const auto& bytes : store_->multiGet(keys)) texts.emplace_back(bytes.begin(), bytes.end());
    return texts;
  });
}

}  // namespace assay::impl
