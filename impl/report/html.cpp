#include "impl/report/html.hpp"

#include "spec/text/utf8.hpp"

namespace assay::impl::report {

std::string escaped(std::string_view text) {
  std::string out;
  const std::string valid = spec::valid_utf8(text);
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view one = rest.substr(0, spec::utf8_length(rest));
    rest.remove_prefix(one.size());
    const char32_t point = spec::code_point(one);
    if (point == '&')
      out += "&amp;";
    else if (point == '<')
      out += "&lt;";
    else if (point == '>')
      out += "&gt;";
    else if (point == '"')
      out += "&quot;";
    else if (point == '\'')
      out += "&#39;";
    else if ((spec::is_control(point) && point != '\n' && point != '\t') || spec::is_unseen(point))
      out += "\xEF\xBF\xBD";
    else
      out += one;
  }
  return out;
}

}  // namespace assay::impl::report
