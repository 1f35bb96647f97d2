#include "spec/failure.hpp"

#include <filesystem>
#include <new>
#include <stdexcept>

namespace assay {

Failure failure_of(const std::exception& error) {
  if (const auto* user = dynamic_cast<const UserError*>(&error)) return {user->code(), error.what()};
  if (dynamic_cast<const SpecError*>(&error)) return {ExitCode::usage, error.what()};
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return {ExitCode::io, spec::message_line(files->path1().string() + ": " + files->code().message() +
                                             "; look at the path, its permissions and its disk")};
  if (dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const std::length_error*>(&error))
    return {ExitCode::usage, "what was asked for takes more memory than there is; give something smaller"};
  return {ExitCode::bug, error.what()};
}

}  // namespace assay
