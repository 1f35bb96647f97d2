#pragma once
// The values of a JSON text with the path of each.
#include <string>
#include <string_view>
#include <vector>

namespace assay::spec::audit {

enum class JsonKind { number, text, word };

/// What is done with the values: path "training_iterations[].mfu.mfu" is the member mfu of the member mfu of
/// an element of the list training_iterations.
class JsonValues {
 public:
  virtual ~JsonValues() = default;
  virtual void value(std::string_view path, JsonKind kind, std::string_view token) = 0;
  /// A list begins, whose elements will have that path.
  virtual void begin_list(std::string_view) {}
  /// An object that is an element of a list begins or ends; its path ends in "[]".
  virtual void begin_element(std::string_view) {}
  virtual void end_element(std::string_view) {}
  /// Takes the whole element that `rest` starts with, of the list with that path, and passes over its bytes;
  /// or returns false.
  virtual bool known_element(std::string_view /*path*/, std::string_view /*rest*/) { return false; }
};

/// Events of JsonScan turned into values with paths. Lists of numbers give each number the path of the list.
class JsonPaths {
 public:
  explicit JsonPaths(JsonValues& values) : values_(values) {}
  /// Forgets a text that was not read to its end.
  void begin() {
    path_.clear();
    ends_.clear();
  }

  bool known_element(std::string_view rest) { return values_.known_element(path_, rest); }
  void begin_object() {
    if (path_.ends_with("[]")) values_.begin_element(path_);
    ends_.push_back(path_.size());
  }
  void end_object() {
    path_.resize(ends_.back());
    ends_.pop_back();
    if (path_.ends_with("[]")) values_.end_element(path_);
  }
  void begin_array() {
    ends_.push_back(path_.size());
    path_ += "[]";
    values_.begin_list(path_);
  }
  void end_array() {
    path_.resize(ends_.back());
    ends_.pop_back();
  }
  void key(std::string_view name) {
    path_.resize(ends_.back());
    if (!path_.empty()) path_ += '.';
    path_ += name.substr(0, 256);
  }
  void number(std::string_view token) { values_.value(path_, JsonKind::number, token); }
  void text(std::string_view token) { values_.value(path_, JsonKind::text, token); }
  void word(std::string_view token) { values_.value(path_, JsonKind::word, token); }

 private:
  JsonValues& values_;
  std::string path_;
  std::vector<std::size_t> ends_;  // of the path of every object and list that is open
};

}  // namespace assay::spec::audit
