#pragma once
// One set of parameters in its layout, on paper: which collectives bring its weights and sum its gradients,
// and when each begins and is waited for, as impl/params/layouts does it.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "spec/memory/setting.hpp"
#include "spec/parallel/collective.hpp"
#include "spec/parallel/gathered_codes.hpp"

namespace assay::spec::paper {

enum class Group;
struct Trace;

class PaperLayout {
 public:
  /// Both must outlive this. `number`: of share.sets.
  PaperLayout(const memory::Setting& setting, const Share& share, std::size_t number, Trace& trace);

  /// What runs from here on stands for `times` micro-batches.
  void begin_forward(std::int64_t times) { times_ = times, backward_ = false; }
  /// `last`: one of them is the step's last.
  void begin_backward(bool last) { backward_ = true, last_ = last; }
  void acquire(std::int64_t block);
  void gradients(std::int64_t block);
  void gradients_ready(std::int64_t block);
  void end_backward();  ///< of the step: waits for the sums
  void sum_squares();
  void end_update();  ///< brings what was updated to the ranks that read it

 private:
  using Number = std::optional<std::size_t>;  ///< in the trace; none: not under way
  /// As ShardedParameters::Slot.
  struct Slot {
    std::int64_t holds = -1, accumulates = -1;
    Number gather = {}, reduction = {};
    bool completes = false;  ///< `reduction` is the step's last
  };
  const Layout& layout() const { return set_.layout; }
  bool is_head(std::int64_t block) const { return block + 1 == set_.partition.inventory.blocks; }
  Slot& slot_of(std::int64_t block);
  void gather(std::int64_t block, std::int64_t times);
  void wait_for(std::int64_t block);
  void accumulate(std::int64_t block);
  void finish(Slot& slot);
  Number begin(Group over, Collective kind, std::int64_t block, const Count& bytes, std::int64_t times);
  void wait(Number& number);
  void behind_update(Collective kind, const Count& bytes);

  const ParameterSet& set_;
  const std::size_t number_;
  Trace& trace_;
  const bool tied_, gains_apart_;
  const std::int64_t weight_, wire_;  ///< bytes of an entry of a weight, and of a gradient that is summed
  const GatheredCodes codes_;
  std::int64_t times_ = 1;
  bool backward_ = false, last_ = false;
  std::array<Slot, 4> slots_ = {};  ///< two of decoder blocks, then the embedding, then the head
  std::vector<Number> sums_;        ///< of the last micro-batch: what is waited for behind it
};

}  // namespace assay::spec::paper
