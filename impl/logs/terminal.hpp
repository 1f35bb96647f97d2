#pragma once
// What the two output streams can show.

namespace assay::impl::logs {

struct Terminal {
  bool data_is_terminal = false;      ///< stdout
  bool messages_is_terminal = false;  ///< stderr
  bool colour = false;   ///< escape sequences for colours may be written to streams that are terminals
  bool unicode = false;  ///< the locale's encoding is UTF-8
  int width = 80;        ///< columns
};

/// Asks the system and the environment: NO_COLOR (any value turns colours off, https://no-color.org),
/// TERM=dumb (no colours, no progress bar), LC_ALL, LC_CTYPE, LANG.
Terminal detect_terminal();

}  // namespace assay::impl::logs
