#include "impl/logs/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

namespace assay::impl::logs {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool locale_is_utf8() {
  // The first that is set decides (POSIX, "Internationalization Variables").
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = environment(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

Terminal detect_terminal() {
  Terminal terminal;
  const bool dumb = environment("TERM") == "dumb";
  terminal.data_is_terminal = isatty(STDOUT_FILENO) && !dumb;
  terminal.messages_is_terminal = isatty(STDERR_FILENO) && !dumb;
  terminal.colour = environment("NO_COLOR").empty() && !dumb;
  terminal.unicode = locale_is_utf8();
  winsize size{};
  if (terminal.messages_is_terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = size.ws_col;
  return terminal;
}

}  // namespace assay::impl::logs
