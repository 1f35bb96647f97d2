#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/parts.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/params/slices.hpp"
#include "spec/checkpoint/slice_hash.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

namespace {
/// "[128, 64]"
std::string shown(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t size : shape) out += (out.empty() ? "[" : ", ") + std::to_string(size);
  return out.empty() ? "[]" : out + "]";
}

/// checkpoint_c4: exactly the parameters of the model, each with its shape and dtype, in every part.
void check_model(const StoredState& stored, const ParameterBuffers& buffers) {
  const fs::path& folder = stored.folder();
  if (stored.manifest().dtype != dtype_name(buffers))
    refuse(folder,
           "checkpoint_c4: state is " + stored.manifest().dtype + ", this run's is " + dtype_name(buffers));
  for (const spec::Parameter& parameter : buffers.model.parameters) {
    const std::string dtype = dtype_name(buffers, parameter);
    const ParameterEntry& entry = stored.parameter(parameter.name);
    if (entry.dtype != dtype)
      refuse(folder, "checkpoint_c4: " + parameter.name + " is " + entry.dtype + ", the model's is " + dtype);
    if (entry.shape != parameter.shape)
      refuse(folder, "checkpoint_c4: " + parameter.name + " has shape " + shown(entry.shape) +
                         ", the model's has " + shown(parameter.shape));
    for (const Part& part : parts)
      if (stored.slices(part.name, parameter.name).empty() == holds(part, parameter))
        refuse(folder, "checkpoint_c4: " + std::string(part.name) + " of " + parameter.name +
                           (holds(part, parameter) ? " is not there" : " is no part of a state"));
  }
  if (stored.parameters().size() != buffers.model.parameters.size())
    refuse(folder, "checkpoint_c4: holds " + std::to_string(stored.parameters().size()) +
                       " parameters, the model has " + std::to_string(buffers.model.parameters.size()));
}

void require_committed(const fs::path& folder) {
  // checkpoint_c1
  if (!committed(folder))
    refuse(folder,
           "checkpoint_c1: not a committed checkpoint (COMMITTED is missing or does not belong to "
           "manifest.json)" +
               way_out(folder));
}

/// Reads what this rank holds, and adds up hashes of what it vouches for.
class Filling {
 public:
  Filling(const StoredState& stored, const ParameterBuffers& buffers, const Writer& writer)
      : stored_(stored),
        buffers_(buffers),
        writer_(writer),
        sums_(at::zeros({static_cast<std::int64_t>(stored.slice_count())}, at::kLong)) {}

  /// Of every stored slice, the hash of the elements that this rank vouches for.
  const at::Tensor& sums() const { return sums_; }

  void part(const Part& part) {
    const std::vector<Destination> places = destinations(buffers_, part.buffer);
    const std::vector<HeldSlice> vouched = own_slices(buffers_, part.buffer, writer_);  // by number
    auto first = vouched.begin();
    for (std::size_t number = 0; number < places.size(); ++number) {
      const auto last =
          std::find_if(first, vouched.end(), [&](const HeldSlice& each) { return each.number != number; });
      const spec::Parameter& parameter = buffers_.model.parameters[number];
      for (const StoredState::Stored& stored : stored_.slices(part.name, parameter.name))
        for (const spec::Slice& wanted : places[number].read)
          read(stored, spec::intersection(stored.entry->slice, wanted), parameter, places[number],
               {first, last});
      first = last;
    }
  }

 private:
  void read(const StoredState::Stored& stored, const spec::Slice& wanted, const spec::Parameter& parameter,
            const Destination& place, std::span<const HeldSlice> vouched) {
    constexpr std::int64_t piece_bytes = 16 << 20;
    if (wanted.size() == 0) return;
    const at::ScalarType type = scalar_type_of(dtype_name(buffers_, parameter));
    const auto element = static_cast<std::int64_t>(at::elementSize(type));
    const std::int64_t rows = std::max<std::int64_t>(1, piece_bytes / (wanted.columns * element));
    for (std::int64_t row = 0; row < wanted.rows; row += rows) {
      spec::Slice piece = wanted;
      piece.row += row, piece.rows = std::min(rows, wanted.rows - row);
      const at::Tensor values = at::empty({piece.rows, piece.columns}, type);
      auto* bytes = static_cast<std::byte*>(values.data_ptr());
      const auto row_bytes = static_cast<std::size_t>(piece.columns * element);
      stored_.read(stored, piece, bytes, row_bytes);
      place.put(piece, values);
      for (const HeldSlice& each : vouched) {
        const spec::Slice common = spec::intersection(piece, each.slice);
        if (common.size() == 0) continue;
        const spec::Slice at = spec::relative(common, piece);
        const std::size_t begin =
            static_cast<std::size_t>(at.row) * row_bytes + static_cast<std::size_t>(at.column * element);
        sums_.data_ptr<std::int64_t>()[stored.number] += static_cast<std::int64_t>(
            spec::slice_hash({bytes + begin, values.nbytes() - begin}, static_cast<std::size_t>(element),
                             common, spec::whole_slice(parameter.shape).columns, row_bytes));
      }
    }
  }

  const StoredState& stored_;
  const ParameterBuffers& buffers_;
  const Writer& writer_;
  at::Tensor sums_;
};

/// Compares whole files with what was written: dealt out to the ranks that see the same ones.
void check_whole_files(const StoredState& stored, const std::vector<std::string>& identities,
                       Communicator& communicator) {
  const auto me = identities.begin() + communicator.rank();
  const auto ranks = static_cast<std::size_t>(std::count(identities.begin(), identities.end(), *me)),
             rank = static_cast<std::size_t>(std::count(identities.begin(), me, *me));
  refuse_together(communicator, [&] {
    for (std::size_t file = rank; file < stored.manifest().files.size(); file += ranks)
      stored.check_file(file);
  });
}

/// That the sums over all ranks are the hashes that were written.
void check_sums(const StoredState& stored, const at::Tensor& sums, Communicator& communicator) {
  communicator.all_reduce_sum(sums);
  refuse_together(communicator, [&] {
    const auto* sum = sums.data_ptr<std::int64_t>();
    std::size_t number = 0;
    for (std::size_t f = 0; f < stored.manifest().files.size(); ++f)
      for (const SliceEntry& entry : stored.manifest().files[f].slices)
        stored.check_sum({f, number, &entry}, static_cast<std::uint64_t>(sum[number])), ++number;
  });
}

State state_of(const Manifest& manifest) {
  State state{.step = manifest.step, .tokens = manifest.tokens, .config = manifest.config};
  state.skipped = manifest.skipped;
  return state;
}
}  // namespace

State read_state(const std::string& path) {
  require_committed(path);
  return state_of(read_manifest(path));
}

std::string content_of(const std::string& path) {
  const fs::path folder(path);
  require_committed(folder);
  const std::string manifest = read_whole(folder / manifest_name, spec::file_limits::manifest);
  return content_hash(std::as_bytes(std::span(manifest)));
}

std::int64_t step_of(const std::string& path) { return read_manifest(path).step; }

State load(const std::string& path, ParameterBuffers& buffers, LayoutGroups& groups) {
  Communicator& all = groups.all();
  std::optional<StoredState> opened;
  std::string identity;  // of the folder, as this host sees it
  refuse_together(all, [&] {
    opened.emplace(path);
    check_model(*opened, buffers);
    identity = InputFile(fs::path(path) / manifest_name).identity();
  });
  const StoredState& stored = *opened;
  const std::vector<std::string> identities = all.all_gather(identity);
  // Parts of a slice's hash add up where all ranks read one file.
  const bool by_sums =
      stored.sums() && std::count(identities.begin(), identities.end(), identity) == std::ssize(identities);
  if (!by_sums) check_whole_files(stored, identities, all);
  const Writer writer = writer_of(groups);
  Filling filling(stored, buffers, writer);
  refuse_together(all, [&] {
    const auto ranks = static_cast<std::size_t>(all.size());
    for (auto file = static_cast<std::size_t>(all.rank()); by_sums && file < stored.manifest().files.size();
         file += ranks)
      stored.check_header(file);
  });
  // From here on the buffers are touched.
  refuse_together(all, [&] {
    for (const Part& part : parts) filling.part(part);
  });
  if (by_sums) check_sums(stored, filling.sums(), all);
  return state_of(stored.manifest());
}

State load(const std::string& path, ParameterBuffers& buffers, Communicator& communicator) {
  LayoutGroups groups(communicator, spec::layout_of(spec::DataParallel::replicate, communicator.size()));
  return load(path, buffers, groups);
}

State load(const std::string& path, ParameterBuffers& buffers) {
  return load(path, buffers, *make_self_communicator());
}

}  // namespace assay::impl::checkpoint
