#include "impl/checkpoint/stored_state.hpp"

#include <algorithm>
#include <utility>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/safetensors_file.hpp"
#include "spec/checkpoint/slice_hash.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

namespace {
/// Files of other ranks than a rank's own are read one after the other, so that few are open at a time.
constexpr std::size_t most_open = 64;
constexpr std::size_t piece_bytes = 4 << 20;  // of a tensor in memory

std::int64_t columns_of(const ParameterEntry& parameter) {
  return spec::whole_slice(parameter.shape).columns;
}
std::size_t bytes_of_element(const ParameterEntry& parameter) {
  return static_cast<std::size_t>(spec::safetensors::element_bytes(parameter.dtype));
}
std::string text_of(const SliceEntry& entry, const ParameterEntry& parameter) {
  return "tensor " + entry.part + "/" + entry.parameter + spec::suffix_of(entry.slice, parameter.shape);
}
}  // namespace

void refuse(const fs::path& path, const std::string& what) {
  throw UserError(ExitCode::bad_data, path.string() + ": " + what);
}

std::string way_out(const fs::path& folder) {
  return "; move " + folder.string() +
         " away and resume from the checkpoint before it (checkpoint.resume=auto), or start anew";
}

StoredState::StoredState(fs::path folder, std::string advice)
    : folder_(std::move(folder)), advice_(std::move(advice)) {
  manifest_ = committed_manifest(folder_, advice_);
  if (manifest_.schema == 1) add_first_form();
  index();
}

void StoredState::refuse_content(std::size_t file, const std::string& where) const {
  refuse(folder_ / manifest_.files.at(file).name,
         "checkpoint_c3: content differs from what was written, in " + where + advice_);
}

const InputFile& StoredState::opened(std::size_t file) const {
  const auto found = open_.find(file);
  if (found != open_.end()) return found->second;
  const FileEntry& entry = manifest_.files.at(file);
  if (open_.size() >= most_open) open_.clear();
  try {
    InputFile input(folder_ / entry.name);
    // checkpoint_c3
    if (static_cast<std::int64_t>(input.size()) != entry.bytes)
      refuse(input.path(), "checkpoint_c3: has " + std::to_string(input.size()) +
                               " bytes, the manifest says " + std::to_string(entry.bytes) + advice_);
    return open_.emplace(file, std::move(input)).first->second;
  } catch (const InputFile::Unreadable& error) {
    refuse(folder_ / entry.name, std::string("checkpoint_c3: ") + error.what() + advice_);
  }
}

/// Each part has a file, in which every tensor is whole.
void StoredState::add_first_form() {
  for (std::size_t f = 0; f < manifest_.files.size(); ++f) {
    FileEntry& file = manifest_.files[f];
    const InputFile& input = opened(f);
    const auto header = [&]() -> spec::safetensors::Header {
      try {
        return header_in(input);
      } catch (const InputFile::Unreadable&) {
        throw;
      } catch (const UserError&) {
        refuse_content(f, "its header");
      }
    }();
    if (header.tensors.size() != file.slices.size()) refuse_content(f, "its header");
    for (std::size_t i = 0; i < file.slices.size(); ++i) {
      SliceEntry& slice = file.slices[i];
      const auto tensor = std::find_if(header.tensors.begin(), header.tensors.end(),
                                       [&](const auto& each) { return each.name == slice.parameter; });
      if (tensor == header.tensors.end()) refuse_content(f, "its header");
      slice.slice = spec::whole_slice(tensor->shape);
      slice.begin = header.data_offset + tensor->begin;
      if (slice.part == part_names[0])
        manifest_.parameters.push_back(
            {.name = tensor->name, .dtype = tensor->dtype, .shape = tensor->shape});
    }
  }
}

void StoredState::index() {
  for (std::size_t i = 0; i < manifest_.parameters.size(); ++i) numbers_[manifest_.parameters[i].name] = i;
  for (std::size_t f = 0; f < manifest_.files.size(); ++f)
    for (const SliceEntry& entry : manifest_.files[f].slices)
      table_[{entry.part, entry.parameter}].push_back({f, count_++, &entry});
  // checkpoint_c4
  for (const auto& [key, stored] : table_) {
    const ParameterEntry& whole = parameter(key.second);
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const spec::Slice& slice = stored[i].entry->slice;
      bool alone = slice.rows > 0 && slice.columns > 0 &&
                   spec::intersection(slice, spec::whole_slice(whole.shape)) == slice;
      for (std::size_t j = 0; j < i; ++j)
        alone = alone && spec::intersection(slice, stored[j].entry->slice).size() == 0;
      if (!alone)
        refuse(folder_, "checkpoint_c4: " + text_of(*stored[i].entry, whole) +
                            " lies outside of its parameter, or is there twice" + advice_);
      const FileEntry& file = manifest_.files[stored[i].file];
      const std::uint64_t room = static_cast<std::uint64_t>(file.bytes);
      if (stored[i].entry->begin > room || static_cast<std::uint64_t>(slice.size()) >
                                               (room - stored[i].entry->begin) / bytes_of_element(whole))
        refuse(folder_, "checkpoint_c4: " + text_of(*stored[i].entry, whole) + " lies outside of its file " +
                            file.name + advice_);
      elements += slice.size();
    }
    if (elements != spec::whole_slice(whole.shape).size())
      refuse(folder_, "checkpoint_c4: " + key.first + "/" + key.second +
                          " is there in part: " + std::to_string(elements) + " elements" + advice_);
  }
}

const ParameterEntry& StoredState::parameter(const std::string& name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) refuse(folder_, "checkpoint_c4: it holds no parameter " + name);
  return manifest_.parameters[found->second];
}

const std::vector<StoredState::Stored>& StoredState::slices(const std::string& part,
                                                            const std::string& parameter) const {
  static const std::vector<Stored> none;
  const auto found = table_.find({part, parameter});
  return found == table_.end() ? none : found->second;
}

std::int64_t StoredState::bytes() const {
  std::int64_t sum = 0;
  for (const FileEntry& file : manifest_.files) sum += file.bytes;
  return sum;
}

void StoredState::read(const Stored& stored, const spec::Slice& wanted, std::byte* into,
                       std::size_t row_bytes) const {
  const std::size_t element = bytes_of_element(parameter(stored.entry->parameter));
  const InputFile& file = opened(stored.file);
  try {
    read_slice(file, stored.entry->begin, element, stored.entry->slice, wanted, into, row_bytes);
  } catch (const InputFile::Unreadable& error) {
    refuse(file.path(), std::string("checkpoint_c3: ") + error.what() + advice_);
  }
}

void StoredState::stream(
    const std::string& part, const std::string& name,
    const std::function<void(const spec::Slice&, std::span<const std::byte>)>& take) const {
  const ParameterEntry& whole = parameter(name);
  const std::vector<Stored>& all = slices(part, name);
  const std::size_t element = bytes_of_element(whole);
  const spec::Slice everything = spec::whole_slice(whole.shape);
  const std::size_t row_bytes = static_cast<std::size_t>(everything.columns) * element;
  const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(1, piece_bytes / row_bytes));
  if (!sums())
    for (const Stored& stored : all) check_slice(stored.file, *stored.entry);
  std::vector<std::uint64_t> hashes(all.size());
  std::vector<std::byte> bytes;
  for (std::int64_t row = 0; row < everything.rows; row += rows) {
    const spec::Slice piece{row, std::min(rows, everything.rows - row), 0, everything.columns};
    bytes.resize(static_cast<std::size_t>(piece.rows) * row_bytes);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const spec::Slice common = spec::intersection(all[i].entry->slice, piece);
      if (common.size() == 0) continue;
      const spec::Slice at = spec::relative(common, piece);
      const std::size_t begin =
          static_cast<std::size_t>(at.row) * row_bytes + static_cast<std::size_t>(at.column) * element;
      read(all[i], common, bytes.data() + begin, row_bytes);
      hashes[i] +=
          spec::slice_hash(std::span(bytes).subspan(begin), element, common, everything.columns, row_bytes);
    }
    take(piece, bytes);
  }
  for (std::size_t i = 0; sums() && i < all.size(); ++i) check_sum(all[i], hashes[i]);
}

void StoredState::check_header(std::size_t file) const {
  const FileEntry& entry = manifest_.files.at(file);
  std::uint64_t end = static_cast<std::uint64_t>(entry.bytes);
  for (const SliceEntry& slice : entry.slices) end = std::min(end, slice.begin);
  if (opened(file).hash(0, end) != entry.hash) refuse_content(file, "its header");
}

void StoredState::check_sum(const Stored& stored, std::uint64_t sum) const {
  if (spec::hash_text(sum) != stored.entry->hash)
    refuse_content(stored.file, text_of(*stored.entry, parameter(stored.entry->parameter)));
}

void StoredState::check_file(std::size_t file) const {
  const FileEntry& entry = manifest_.files.at(file);
  const InputFile& input = opened(file);
  if (!sums()) {
    if (input.hash(0, input.size()) == entry.hash) return;
    for (const SliceEntry& slice : entry.slices) check_slice(file, slice);
    refuse_content(file, "its header");
  }
  check_header(file);
  for (const SliceEntry& slice : entry.slices) check_slice(file, slice);
}

void StoredState::check_slice(std::size_t file, const SliceEntry& slice) const {
  const ParameterEntry& whole = parameter(slice.parameter);
  const std::size_t row_bytes = static_cast<std::size_t>(slice.slice.columns) * bytes_of_element(whole);
  if (!sums()) {
    const InputFile& input = opened(file);
    if (input.hash(slice.begin, slice.begin + static_cast<std::uint64_t>(slice.slice.rows) * row_bytes) !=
        slice.hash)
      refuse_content(file, text_of(slice, whole));
    return;
  }
  const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(1, piece_bytes / row_bytes));
  const Stored stored{file, 0, &slice};
  std::vector<std::byte> piece;
  std::uint64_t sum = 0;
  for (std::int64_t row = 0; row < slice.slice.rows; row += rows) {
    spec::Slice part = slice.slice;
    part.row += row, part.rows = std::min(rows, slice.slice.rows - row);
    piece.resize(static_cast<std::size_t>(part.rows) * row_bytes);
    read(stored, part, piece.data(), row_bytes);
    sum += spec::slice_hash(piece, bytes_of_element(whole), part, columns_of(whole));
  }
  check_sum(stored, sum);
}

}  // namespace assay::impl::checkpoint
