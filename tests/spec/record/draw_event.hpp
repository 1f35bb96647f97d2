#pragma once
// Random events of every kind with hostile texts and extreme numbers, for round-trip properties.
#include <rapidcheck.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "spec/record/fields.hpp"

namespace assay::tests {

struct DrawField {
  template <class T>
  void operator()(const char*, T& member) const {
    draw(member);
  }

  static void draw(bool& flag) { flag = *rc::gen::arbitrary<bool>(); }
  static void draw(std::int64_t& number) {
    number = *rc::gen::element<std::int64_t>(0, 1, -1, *rc::gen::arbitrary<std::int64_t>(),
                                             std::numeric_limits<std::int64_t>::max(),
                                             std::numeric_limits<std::int64_t>::min());
  }
  /// Any bit pattern but NaN (which never equals itself; it has a test of its own).
  static void draw(double& number) {
    number = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
    if (number != number)
      number = *rc::gen::element(0.0, -0.0, 1.0, 1e22, std::numeric_limits<double>::infinity());
  }
  static void draw(std::string& text) {
    static const std::vector<std::string> pieces = {
        "a", "\"", "\\", "\n", "\t",   std::string(1, '\0'), "\x1f", "{",
        "}", ":",  "ü",  "金", "🥇", "</script>"};
    text.clear();
    for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)))
      text += piece;
  }
  static void draw(spec::record::EndReason& reason) {
    reason = static_cast<spec::record::EndReason>(*rc::gen::inRange(0, 4));
  }
  static void draw(spec::Value& value) {
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        draw(value.emplace<std::int64_t>());
        break;
      case 1:  // settings are finite
        value = std::ldexp(1.0 + *rc::gen::inRange(0, 1000), *rc::gen::inRange(-900, 900));
        break;
      case 2:
        draw(value.emplace<std::string>());
        break;
      default:
        draw(value.emplace<std::vector<std::string>>());
    }
  }
  static void draw(spec::record::Settings& settings) {
    settings.clear();
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
      settings.emplace_back("group.key" + std::to_string(i), spec::Value());
      draw(settings.back().second);
    }
  }
  template <class T>
  static void draw(std::vector<T>& entries) {
    entries.resize(*rc::gen::inRange<std::size_t>(0, 4));
    for (T& entry : entries) draw(entry);
  }
  template <class T>
  static void draw(std::optional<T>& value) {
    value.reset();
    if (*rc::gen::arbitrary<bool>()) draw(value.emplace());
  }
  template <class T>
  requires requires(T& object, DrawField field) { fields(object, field); }
  static void draw(T& object) { fields(object, DrawField()); }
};

template <class T>
T drawn() {
  T event;
  DrawField::draw(event);
  return event;
}

inline spec::record::Event draw_event() {
  using namespace spec::record;
  switch (*rc::gen::inRange(0, 12)) {
    case 0: {
      RunStart start = drawn<RunStart>();
      start.schema = kSchema;
      return start;
    }
    case 1:
      return drawn<Step>();
    case 2:
      return drawn<Warning>();
    case 3:
      return drawn<Checkpoint>();
    case 4:
      return drawn<ResumeFrom>();
    case 5:
      return drawn<Samples>();
    case 6:
      return drawn<Memory>();
    case 7:
      return drawn<Validation>();
    case 8:
      return drawn<WeightsFrom>();
    case 9:
      return drawn<Profile>();
    case 10:
      return drawn<SkippedStep>();
    default:
      return drawn<RunEnd>();
  }
}

}  // namespace assay::tests
