#pragma once
// One text of every rank, through a key-value store. Only for files that know c10d.
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace assay::impl {

/// Rounds in which each rank gives a text and gets what was made of all. Few ranks read each other's: one
/// trip to the store. Of more of them rank 0, where the store is, reads all texts, and the others its one
/// result: the keys that are read grow with the ranks, not with their square. All ranks play the same rounds
/// in the same order; a round that has ended for one rank has begun for all.
class StoreRounds {
 public:
  /// Makes one text of those of all ranks, in their order.
  using Join = std::function<std::string(const std::vector<std::string>&)>;

  /// Ranks that still read each other's texts: at most 256 keys a round.
  static constexpr int few = 16;

  /// Keys begin with `name`, which is no other's.
  StoreRounds(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size);

  /// What `join` makes of the texts of all ranks, on every rank. Errors: UserError(peer_lost) where the
  /// store, or a rank, does not answer within the store's timeout; those of `join`, where this rank joins.
  std::string joined(const std::string& mine, const Join& join);
  /// The texts of all ranks in their order, on every rank. Errors: as above; std::runtime_error where a rank
  /// gives no text to this round.
  std::vector<std::string> all(const std::string& mine);

 private:
  void begin();
  std::string key(const std::string& of) const { return name_ + std::to_string(round_) + "/" + of; }
  void set(const std::string& key, const std::string& text);
  std::vector<std::string> get(const std::vector<std::string>& keys);
  std::vector<std::string> from_each(const std::string& mine);
  std::string by_rank_0(const std::string& mine, const Join& join);
  void forget_last_round();
  template <class Work>
  auto with_lost_peer_error(Work&& work);

  c10::intrusive_ptr<c10d::Store> store_;
  const std::string name_;
  const int rank_, size_;
  std::int64_t round_ = 0;
  std::vector<std::string> keys_{}, last_keys_{};  ///< of this rank, in this round and the one before
};

}  // namespace assay::impl
