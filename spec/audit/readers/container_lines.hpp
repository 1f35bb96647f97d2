#pragma once
// Logs as Docker keeps them, one JSON object per line that a program printed:
// {"log":"step 1 ...\n","stream":"stdout","time":"2025-05-01T10:00:00.123456789Z"}
#include <istream>
#include <streambuf>
#include <string>
#include <string_view>

#include "spec/audit/readers/line_source.hpp"

namespace assay::spec::audit {

/// Whether a log that starts so is one of Docker's, by its first line.
bool container_lines(std::string_view start);

/// What the program printed, as a stream of the lines that stand in the objects of `blocks`, each under the
/// number of its object; those that are no such objects stay as they are. A long line is kept in several
/// objects, of which all but the last have no line end: it stands under the number of the last, and the
/// others are empty.
class ContainerLines : public std::streambuf {
 public:
  explicit ContainerLines(Blocks& blocks) : blocks_(blocks) {}

 protected:
  int_type underflow() override;

 private:
  bool next(std::string_view& line);
  void unwrap(std::string_view line);

  Blocks& blocks_;
  std::string out_, partial_;
  std::size_t waiting_ = 0;  ///< objects of `partial_`
  bool complete_ = true;     ///< the last line has an end
};

}  // namespace assay::spec::audit
