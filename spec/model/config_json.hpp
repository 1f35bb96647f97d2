#pragma once
// What the readers of Hugging Face's config.json share: typed access to its objects, the options that change
// nothing, and windows of attention (spec/model/hugging_face.md).
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "spec/model/model_spec.hpp"
#include "spec/text/document.hpp"
#include "spec/text/faults.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::config_json {

/// Typed access to one JSON object in which null is as good as absent. It keeps which keys were read, so that
/// what nobody reads can be named (`options_left`). What is missing or of another type is kept in `faults`,
/// and read as 0 or nothing, so that all of it is said at once.
class Fields {
 public:
  Fields(document::Item object, Faults& faults) : object_(object), faults_(&faults) {}

  [[noreturn]] void refuse(const std::string& what) const { object_.refuse(what); }
  std::optional<document::Item> find(const char* key) const {
    const auto found = look_up(key);
    return found && found->is(document::Kind::null) ? std::nullopt : found;
  }
  bool has(const char* key) const { return look_up(key).has_value(); }  ///< null counts
  /// Of a file without the key `otherwise`; with none, it is asked for.
  std::int64_t integer(const char* key, std::optional<std::int64_t> otherwise = {}) const {
    return kept(otherwise.value_or(0),
                [&] { return use(key, otherwise) ? *otherwise : required(key).integer(); });
  }
  double real(const char* key, std::optional<double> otherwise = {}) const {
    return kept(otherwise.value_or(0),
                [&] { return use(key, otherwise) ? *otherwise : required(key).real(); });
  }
  bool flag(const char* key, bool otherwise) const {
    return kept(otherwise, [&] { return find(key) ? find(key)->boolean() : otherwise; });
  }
  std::string word(const char* key, const std::string& otherwise) const {
    return kept(otherwise, [&] { return find(key) ? find(key)->text() : otherwise; });
  }
  document::Item object() const { return object_; }
  Faults& faults() const { return *faults_; }
  bool was_read(const std::string& key) const { return read_->contains(key); }

 private:
  std::optional<document::Item> look_up(const char* key) const {
    read_->insert(key);
    return object_.find(key);
  }
  template <class Value>
  bool use(const char* key, const std::optional<Value>& otherwise) const {
    return otherwise && !find(key);
  }
  template <class Value, class Read>
  Value kept(Value value, const Read& read) const {
    faults_->gather([&] { value = read(); });
    return value;
  }
  document::Item required(const char* key) const {
    constexpr const char* advice = "this is not a complete config.json";
    read_->insert(key);
    if (const auto value = object_.at(key, advice); !value.is(document::Kind::null)) return value;
    object_.refuse(quote(key) + " is null; " + advice);
  }

  document::Item object_;
  Faults* faults_;
  std::shared_ptr<std::set<std::string>> read_ = std::make_shared<std::set<std::string>>();
};

inline constexpr const char* not_in_spec =
    " is not supported: the spec has no such model (spec/model/model.md)";

/// Llama's layers under another name, with other defaults.
inline constexpr const char* mistral = "mistral";
inline bool is_mistral(const Fields& fields) { return fields.word("model_type", "") == mistral; }

/// The whole of a config.json, or its table of rotary positions.
enum class OptionsOf { file, rope };

/// Adds the options that no reader asked for and that count for nothing to `named`: "is_llama_config = true
/// (why)"; those without any consequence are left out. `type`: the model_type or rope_type. Into the faults
/// of `fields`: each option that changes what is computed, with the value that passes.
void options_left(const Fields& fields, OptionsOf options, const std::string& type,
                  std::vector<std::string>& named);

/// Reads the window that all layers have, and refuses one that some have and that leaves out something of
/// sequences of `longest` tokens, or else of as many as the file has positions. One that leaves out nothing
/// is added to `named`.
void read_window(const Fields& fields, ModelSpec& model, std::optional<std::int64_t> longest,
                 std::vector<std::string>& named);

/// Refuses layers of other types than full attention, or one window that all have (`read_window`).
void refuse_other_layers(const Fields& fields, Family family);

}  // namespace assay::spec::config_json
