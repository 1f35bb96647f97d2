#pragma once
// Memory on paper. A tensor takes its bytes when it is made, and frees them when its last holder is
// destroyed, as a real tensor does. The ledger knows the live tensors, now and at the peak.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "spec/count.hpp"

namespace assay::spec::memory {

/// What a tensor is for.
enum class Purpose { state, inputs, activations, head, temporaries };
std::string to_string(Purpose purpose);  ///< "activations"

/// Tensors of one name that are live at the same time.
struct Item {
  std::string name;  ///< as in spec/plan/plan.md
  Purpose purpose = Purpose::temporaries;
  std::vector<std::int64_t> shape;  ///< of each
  std::int64_t element_bytes = 0;   ///< [B]
  std::int64_t count = 0;           ///< how many
  Count bytes;                      ///< of all [B]
  bool operator==(const Item&) const = default;
};

/// Holders share a tensor by copying this. Empty: none is held.
using Tensor = std::shared_ptr<const void>;

class Ledger {
 public:
  /// `snapshot`: number of the tensor, counted from 1 as they are made, at which `items` is taken; 0: never.
  explicit Ledger(std::int64_t snapshot = 0) : snapshot_(snapshot) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// A tensor of `shape`, each extent >= 0; it must not outlive the ledger.
  Tensor make(const std::string& name, Purpose purpose, std::vector<std::int64_t> shape,
              std::int64_t element_bytes);
  /// Names what runs from here on, "backward of block 3".
  void enter(std::string moment) { moment_ = std::move(moment); }

  /// From here on `most` counts anew.
  void mark() { most_ = now_; }

  const Count& now() const { return now_; }                    ///< [B]
  const Count& most() const { return most_; }                  ///< at a time since the last mark [B]
  const Count& peak() const { return peak_; }                  ///< [B]
  const std::string& peak_moment() const { return at_peak_; }  ///< what ran when the peak was first reached
  std::int64_t peak_number() const { return peak_number_; }    ///< number of the tensor that reached it
  const std::vector<Item>& items() const { return items_; }    ///< at the snapshot, by name
  std::vector<Item> there() const;                             ///< now, by name

 private:
  void release(Item& item, const Count& bytes);

  const std::int64_t snapshot_;
  std::int64_t number_ = 0, peak_number_ = 0;
  Count now_, peak_, most_;
  std::string moment_, at_peak_;
  std::map<std::string, Item> by_name_;
  std::vector<Item> items_;
};

}  // namespace assay::spec::memory
