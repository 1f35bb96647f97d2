#pragma once
// Mistakes in what a person wrote, kept until all are known, so that one message says them together.
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "spec/error.hpp"

namespace assay::spec {

/// Several mistakes as one error: "3 mistakes:" and a line for each, of the first twenty.
class ManyFaults : public UserError {
 public:
  ManyFaults(ExitCode code, std::vector<std::string> messages);
  const std::vector<std::string>& messages() const noexcept { return messages_; }

 private:
  std::vector<std::string> messages_;
};

class Faults {
 public:
  static constexpr std::size_t most = 100;

  /// Calls `read` and keeps its UserError or SpecError. Whether there was none.
  template <class Read>
  bool gather(Read&& read) {
    try {
      read();
      return true;
    } catch (const ManyFaults& several) {
      for (const std::string& each : several.messages()) keep(several.code(), each);
    } catch (const UserError& error) {
      keep(error.code(), error.what());
    } catch (const SpecError& error) {
      keep(ExitCode::usage, error.what());
    }
    return false;
  }
  /// Keeps SpecError(label, values()) unless `holds`.
  template <class Values>
  void require(bool holds, std::string_view label, Values&& values) {
    gather([&] { assay::require(holds, label, values); });
  }
  bool none() const { return messages_.empty(); }
  /// More are not kept: whoever goes through a text may stop here.
  bool full() const { return messages_.size() >= most; }
  const std::vector<std::string>& messages() const { return messages_; }

  /// Errors: the mistake that was kept, as it was thrown; ManyFaults of several, with the first one's code.
  void refuse() const;

 private:
  /// Of a mistake that is being handled.
  void keep(ExitCode code, const std::string& message);

  std::vector<std::string> messages_;
  std::exception_ptr first_;
  ExitCode code_ = ExitCode::usage;
};

}  // namespace assay::spec
