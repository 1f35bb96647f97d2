#pragma once
// The lines of a record, held to its chain (spec/record/record.md, "Chain"): the one way in which its readers
// walk it.
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "spec/record/chain.hpp"

namespace assay::spec::record {

class RecordLines {
 public:
  /// `origin`: starts every message.
  RecordLines(std::istream& in, std::string origin);

  /// Goes to the next line; false behind the last. A last line that was cut off is none, where the
  /// lines before it have hashes. Errors: UserError(bad_data) for one longer than 64 MiB, UserError(io).
  bool next();
  std::string_view text() const { return text_; }           ///< without its line break, until the next one
  std::int64_t number() const { return number_; }           ///< from 1
  bool ended() const { return ended_; }                     ///< by a line break
  bool as_written() const { return link_ == Link::right; }  ///< record_c3
  const Chain& chain() const { return chain_; }             ///< up to this line
  std::string where() const;                                ///< "run.jsonl:12"

 private:
  bool read_more();
  bool next_text();

  std::istream& in_;
  std::string origin_, buffer_;
  std::size_t begin_ = 0;  ///< in buffer_, of what is not taken yet
  std::string_view text_;
  std::int64_t number_ = 0;
  bool ended_ = true;
  Link link_ = Link::right;
  Chain chain_;
};

/// A place in a record that something else states, as a checkpoint does: the line with that hash.
struct StatedPlace {
  std::string hash;
  std::string by;  ///< "checkpoints/step_00000100"
};

/// What of a record is not as it was written.
struct Damage {
  static constexpr std::size_t most = 5;
  std::vector<std::string> first;  ///< of them, a sentence each
  std::int64_t count = 0;

  void note(const std::string& sentence);
  /// Those, and how many more there are.
  std::vector<std::string> sentences() const;
};

}  // namespace assay::spec::record
