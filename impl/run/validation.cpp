#include "impl/run/validation.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <exception>
#include <numbers>

#include "impl/comm/refusal.hpp"
#include "impl/step/device_staging.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

std::string scan_validation(const data::ValidationSet& set, std::int64_t tensor_ranks,
                            Communicator& communicator) {
  const at::Tensor sums = at::zeros({2}, at::kLong);
  auto* sum = sums.data_ptr<std::int64_t>();
  refuse_together(communicator, [&] {
    const spec::RankGroup all{.size = communicator.size(), .number = communicator.rank()},
        batch = all.alike(tensor_ranks);
    if (all.neighbours(tensor_ranks).number != 0) return;  // which read the same sequences: one counts
    const auto mine = set.scan(batch.number, batch.size);
    sum[0] = mine.hash, sum[1] = mine.valid_tokens;
  });
  communicator.all_reduce_sum(sums);
  if (sum[1] == 0)
    throw AgreedError(ExitCode::bad_data, "the validation set, " + set.description() +
                                              ", has no valid target in any sequence: its loss would be "
                                              "0/0; give other data in eval.paths, or leave it out");
  return spec::hexadecimal(static_cast<std::uint64_t>(sum[0]));
}

std::optional<ValidationLoss> validation_loss(Model& model, const data::ValidationSet& set,
                                              LayoutGroups& groups, at::Device device,
                                              const std::function<bool()>& goes_on) {
  Communicator& batch_ranks = groups.batch();
  const std::int64_t rank = batch_ranks.rank();
  const spec::data::ValidationRounds rounds{
      .sequences = set.sequences(), .batch = set.batch(), .ranks = batch_ranks.size()};
  // Every rank's losses have places of their own, those of the others are 0 there: the sum over ranks rounds
  // nothing. Behind them this rank's valid tokens.
  const std::int64_t places = rounds.count() * rounds.ranks * rounds.batch;
  const at::Tensor numbers = at::zeros({places + 1}, at::TensorOptions(device).dtype(at::kDouble));
  std::int64_t valid_tokens = 0;
  DeviceStaging staging(device, /*prefetch=*/0);
  for (std::int64_t round = 0; round < rounds.count(); ++round) {
    const std::int64_t first = rounds.first(round, rank);
    data::StepBatches batches{round, {}, 0, 0};
    refuse_together(groups.all(), [&] { batches.micro_batches.push_back(set.read(first)); });
    valid_tokens += batches.micro_batches[0].valid_tokens;
    staging.stage(batches);
    const TokenBatch batch = staging.take(batches).at(0);
    numbers.narrow(0, first, batch.B).copy_(model.token_losses(batch).view({batch.B, batch.T}).sum(1));
    if (!goes_on()) return {};
  }
  numbers[places].fill_(static_cast<double>(valid_tokens));
  if (rounds.ranks > 1) batch_ranks.all_reduce_sum(numbers);
  if (groups.all().size() > 1) groups.all().settle();
  const at::Tensor here = numbers.cpu();
  const double* number = here.const_data_ptr<double>();
  return ValidationLoss{.sum = spec::data::sum_in_order({number, static_cast<std::size_t>(places)}),
                        .valid_tokens = static_cast<std::int64_t>(number[places])};
}

spec::record::Validation event_of(const ValidationLoss& loss, const data::ValidationSet& set) {
  spec::record::Validation event;
  event.loss = loss.sum / static_cast<double>(loss.valid_tokens);
  event.perplexity = std::exp(event.loss);
  if (const auto bytes = set.bytes_per_token()) event.bits_per_byte = event.loss / std::numbers::ln2 / *bytes;
  event.sequences = set.sequences();
  event.valid_tokens = loss.valid_tokens;
  return event;
}

}  // namespace assay::impl::run
