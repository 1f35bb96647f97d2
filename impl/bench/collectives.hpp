#pragma once
// Rates of collectives between the ranks, at the sizes that a model's layouts use.
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "impl/bench/collective_results.hpp"
#include "impl/bench/measure.hpp"
#include "impl/comm/communicator.hpp"
#include "spec/parallel/partition.hpp"

namespace assay::impl::bench {

/// A size of the whole buffer of a collective.
struct BufferSize {
  std::string name;
  std::int64_t elements = 0;  ///< a multiple of ranks
};

/// Elements of the largest decoder block, padded as spec/parallel/partition.md says.
std::int64_t largest_decoder_block(const spec::Partition& partition);

/// Sizes whatever the model, which show latency and where the rate levels off [MiB]. On a CPU few: each takes
/// long.
std::vector<std::int64_t> swept_mebibytes(at::Device device);

/// What is measured: about `mebibytes`, and but for an all-to-all, which moves no parameters, the largest
/// decoder block; the larger of the blocks of embedding and head; all parameters. Padded as
/// spec/parallel/partition.md says, ascending. `element`: bytes of one. None is larger than `most_bytes`: a
/// larger one is cut, and its name begins with "part of".
std::vector<BufferSize> buffer_sizes(spec::Collective collective, const spec::Partition& partition,
                                     std::int64_t element, std::int64_t most_bytes,
                                     const std::vector<std::int64_t>& mebibytes);

/// Dtype of a collective's elements in a layout that computes in `compute`: reductions sum gradients, in fp32
/// beside bf16 weights; an all-gather moves weights, an all-to-all activations.
Dtype element_dtype(spec::Collective collective, Dtype compute);

/// A call that begins `collective` over `whole`, in place: a rank's shard is its part of it. An all-to-all
/// sends it in equal parts and receives into a tensor of its own.
std::function<Communicator::Ticket()> collective_call(Communicator& communicator, spec::Collective collective,
                                                      const at::Tensor& whole);

/// As many zeros, in memory that is really mapped. Errors: UserError(usage) where a GPU's memory does not
/// hold them.
at::Tensor zeros_in_memory(at::Device device, Dtype dtype, std::int64_t elements);

using UseCollective = std::function<void(const CollectiveRow&)>;

/// Collective, as all of these.
CollectiveSubject collective_subject(const Plan& plan, Communicator& communicator);

/// Calls that make up `plan.patience`, each of which takes `seconds` on the slowest rank: the same number on
/// every rank.
std::int64_t calls_of(const Patience& patience, double seconds);

/// Every collective at each of its sizes, of all ranks; `use` gets the same rows on every rank. The buffer is
/// allocated once; connections are made and algorithms chosen in calls that do not count.
void measure_collectives(const Plan& plan, Communicator& communicator, const UseCollective& use);

}  // namespace assay::impl::bench
