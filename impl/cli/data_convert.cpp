#include "impl/cli/data_convert.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/data/checked_ids.hpp"
#include "spec/error.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

namespace fs = std::filesystem;
using checkpoint::DurableFile;

/// A file that is written under another name, and taken away again unless it got its own.
class NewFile {
 public:
  explicit NewFile(const fs::path& path)
      : folder_(path.parent_path()), name_(path.filename().string()), partial_(name_ + ".partial") {
    folder_.remove(partial_);  // of a conversion that was killed
    file_.emplace(folder_, partial_);
  }
  ~NewFile() {
    file_.reset();
    if (!named_) try {
        folder_.remove(partial_);
      } catch (const UserError&) {
        // A later conversion takes it away.
      }
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const std::string& bytes) { file_->write(std::as_bytes(std::span(bytes))); }
  void commit() { file_->commit(); }
  void name() {
    folder_.rename(partial_, name_);
    named_ = true;
  }

 private:
  OutputFolder folder_;
  std::string name_, partial_;
  std::optional<DurableFile> file_;
  bool named_ = false;
};

void append_number(std::string& bytes, std::uint64_t number, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) bytes.push_back(static_cast<char>(number >> (8 * i) & 0xFF));
}

fs::path beside(const fs::path& to, const char* extension) {
  fs::path path = to;
  return path.replace_extension(extension);
}

void refuse_names(const fs::path& to) {
  for (const char* kind : {".json", ".ends", ".idx", ".partial"})
    if (to.extension() == kind)
      throw UserError(ExitCode::usage, spec::quote(to.string()) +
                                           " is the name of what stands beside token files; name the tokens, "
                                           "as tokens.bin");
  for (const fs::path& path : {to, beside(to, ".json"), beside(to, ".ends"), beside(to, ".idx")}) {
    std::error_code none;
    if (fs::exists(fs::symlink_status(path, none)))
      throw UserError(ExitCode::usage,
                      spec::quote(path.string()) + " is there already; name another file, or move it away");
  }
}

}  // namespace

Converted convert_tokens(const data::TokenFile& from, const fs::path& to,
                         const std::function<void(std::int64_t, std::int64_t)>& progress) {
  refuse_names(to);
  const data::IdRange range = data::ids_of({&from})[0];
  data::require_in_vocabulary(from, range);
  const std::vector<std::int64_t> ends = data::document_ends(from.file(), from.format());
  Converted done{.type = range.largest < 65536 ? data::TokenType::uint16 : data::TokenType::uint32,
                 .tokens = from.tokens(),
                 .documents = static_cast<std::int64_t>(ends.size())};
  const std::int64_t width = data::width(done.type);

  NewFile tokens(to), facts(beside(to, ".json"));
  std::optional<NewFile> documents;
  if (!ends.empty()) documents.emplace(beside(to, ".ends"));
  std::vector<std::int32_t> ids;
  std::string bytes;
  for (std::int64_t first = 0; first < done.tokens; first += static_cast<std::int64_t>(ids.size())) {
    ids.resize(static_cast<std::size_t>(std::min<std::int64_t>(1 << 20, done.tokens - first)));
    from.read(first, ids);
    bytes.clear();
    for (const std::int32_t id : ids) append_number(bytes, static_cast<std::uint64_t>(id), width);
    tokens.write(bytes);
    if (progress) progress((first + static_cast<std::int64_t>(ids.size())) * width, done.tokens * width);
  }
  facts.write("{\"format\": \"assay-tokens-1\", \"dtype\": " + spec::json_string(data::name(done.type)) +
              ", \"tokens\": " + std::to_string(done.tokens) +
              (documents ? ", \"documents\": " + std::to_string(done.documents) : std::string()) +
              ", \"converted_from\": " + spec::json_string(from.path().string()) + "}\n");
  bytes.clear();
  for (const std::int64_t end : ends) append_number(bytes, static_cast<std::uint64_t>(end), 8);
  if (documents) documents->write(bytes);

  if (documents) documents->commit();
  facts.commit();
  tokens.commit();
  if (documents) documents->name();
  facts.name();
  tokens.name();
  checkpoint::sync_folder(to.parent_path().empty() ? fs::path(".") : to.parent_path());
  return done;
}

}  // namespace assay::impl::cli
