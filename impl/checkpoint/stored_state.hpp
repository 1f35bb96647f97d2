#pragma once
// A committed checkpoint of either form as a table of slices, each in a file, without a tensor library.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "impl/checkpoint/input_file.hpp"
#include "impl/checkpoint/manifest.hpp"

namespace assay::impl::checkpoint {

/// UserError(bad_data): "<path>: <what>".
[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what);

/// As long as it stands there a damaged checkpoint is the one to continue from, or is in the way of it: what
/// to do, as the end of a message.
std::string way_out(const std::filesystem::path& folder);

/// One thread uses it. Files are opened when they are first read; errors then: UserError(bad_data)
/// checkpoint_c3 where one is not there or has another size than the manifest says.
class StoredState {
 public:
  /// A slice in the table.
  struct Stored {
    std::size_t file = 0;    ///< in the manifest's files
    std::size_t number = 0;  ///< among all slices
    const SliceEntry* entry = nullptr;
  };

  /// Reads marker and manifest, of schema 1 also the files' headers. Errors: UserError(bad_data)
  /// checkpoint_c1, c2, c6; c3 where a header is not one, or lists other tensors than the manifest; c4 where
  /// the slices of a parameter are not the whole of it, or some of it twice. `advice`: what to do about it,
  /// the end of each message.
  StoredState(std::filesystem::path folder, std::string advice);
  /// With the advice of way_out.
  explicit StoredState(const std::filesystem::path& folder) : StoredState(folder, way_out(folder)) {}
  StoredState(const StoredState&) = delete;
  StoredState& operator=(const StoredState&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  /// With the parameters and slices of both forms.
  const std::vector<ParameterEntry>& parameters() const { return manifest_.parameters; }
  /// Errors: UserError(bad_data) checkpoint_c4.
  const ParameterEntry& parameter(const std::string& name) const;
  /// In the order of the files; none where the part does not hold the parameter.
  const std::vector<Stored>& slices(const std::string& part, const std::string& parameter) const;
  std::size_t slice_count() const { return count_; }
  std::int64_t bytes() const;  ///< of all files [B]
  /// Hashes of slices are sums of their elements' (spec/checkpoint/slice_hash.hpp).
  bool sums() const { return manifest_.schema > 1; }

  /// Rows of `wanted`, a part of the stored slice, into `into`, `row_bytes` from one to the next; exactly its
  /// bytes are read.
  void read(const Stored& stored, const spec::Slice& wanted, std::byte* into, std::size_t row_bytes) const;
  /// Gives all of a parameter in pieces of whole rows, in order, and compares its hashes with what was
  /// written. Errors: UserError(bad_data) checkpoint_c3 naming file and tensor, after the last piece.
  void stream(const std::string& part, const std::string& parameter,
              const std::function<void(const spec::Slice& piece, std::span<const std::byte>)>& take) const;

  /// Compares the header of a file with what was written. Errors: UserError(bad_data) checkpoint_c3.
  void check_header(std::size_t file) const;
  /// Compares every byte of a file with what was written. Errors: UserError(bad_data) checkpoint_c3 naming
  /// the file and the tensor.
  void check_file(std::size_t file) const;
  /// That the sum over the elements of a slice is what was written. Errors: as check_file.
  void check_sum(const Stored& stored, std::uint64_t sum) const;
  [[noreturn]] void refuse_content(std::size_t file, const std::string& where) const;

 private:
  const InputFile& opened(std::size_t file) const;
  /// Of a slice alone, whole. Errors: as check_file.
  void check_slice(std::size_t file, const SliceEntry& slice) const;
  void add_first_form();
  void index();

  std::filesystem::path folder_;
  std::string advice_;
  Manifest manifest_;
  std::map<std::pair<std::string, std::string>, std::vector<Stored>> table_;  ///< by part and parameter
  std::map<std::string, std::size_t> numbers_;                                ///< of parameters
  std::size_t count_ = 0;
  mutable std::map<std::size_t, InputFile> open_;
};

}  // namespace assay::impl::checkpoint
