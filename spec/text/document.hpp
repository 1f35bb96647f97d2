#pragma once
// A JSON or TOML text as values, and typed access to them: every error says in which file and at which value,
// what was expected, and what was found. spec/text/json.hpp and spec/text/toml.hpp make them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "spec/error.hpp"

namespace assay::spec::document {

enum class Kind { null, boolean, integer, real, text, date, list, object };
enum class Format { json, toml };

/// Where a value starts. Both count from 1; 0: not known (JSON, unless locate_values filled it in).
struct Position {
  std::uint32_t line = 0, column = 0;
};

struct Entry;

/// One value as the text has it. Integers are exact: std::uint64_t holds those above 2^63 - 1 only. Dates of
/// TOML are recognised, but their values are not kept.
struct Node {
  struct Date {};
  using List = std::vector<Node>;
  using Object = std::vector<Entry>;  ///< in the order of the text, no key twice
  using Content = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Date,
                               List, Object>;
  Content content;
  Position position;

  Node();
  Node(Content content, Position position);
  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  ~Node();
};

struct Entry {
  std::string key;
  Position position;  ///< of the key
  Node value;
};

/// Why a text cannot be read, and where. `byte` counts from 1; 0: the fault has no single position (JSON), or
/// the parser reports line and column only (TOML).
struct Fault {
  std::string why;
  std::size_t byte = 0;
  Position position;
};

/// What errors say of a text beside the value: its file, and the code they exit with.
struct Source {
  std::string origin;  ///< starts every message, e.g. "config.json" or "run.jsonl:12"
  ExitCode code = ExitCode::bad_data;
  Format format = Format::json;

  /// Errors: UserError(code) always: "<origin>:<line>:<column>: <what>"; an unknown position is left out.
  [[noreturn]] void refuse(Position position, const std::string& what) const;
  /// Errors: UserError(code) always: the text is not valid JSON or TOML.
  [[noreturn]] void refuse(const Fault& fault) const;
};

class Tree;

/// A value within a Tree, which must outlive it. Copying is free. Paths in messages are written
/// "batch.micro" and "gpus[0].uuid". Errors of all members: UserError with the source's code.
class Item {
 public:
  Kind kind() const;
  bool is(Kind kind) const { return this->kind() == kind; }

  bool boolean() const;
  std::int64_t integer() const;  ///< as whole; errors: also an integer above 2^63 - 1
  /// The value as a whole number; in TOML also a real one or a text that is one, 1e9 or "64k" (whole_number).
  /// Nothing for any other value.
  std::optional<std::int64_t> whole() const;
  double real() const;  ///< an integer is a real number too
  const std::string& text() const;

  /// Of a list or an object. Errors: it is neither.
  std::size_t size() const;
  /// Element or member `index` < size(), in the order of the text.
  Item operator[](std::size_t index) const;
  /// Key of member `index`. Domain: index < size(). Errors: no object.
  const std::string& key(std::size_t index) const;

  /// The member `key`, or nothing when there is none. Linear in the number of members. Errors: no object.
  std::optional<Item> find(std::string_view key) const;
  /// The member `key`. Errors: it is missing; the message ends with `advice`.
  Item at(std::string_view key, std::string_view advice = "add it") const;
  /// Errors: no object; members that are not among `known`, each at the position of its key, with the nearest
  /// known one.
  void allow_only(const std::vector<std::string>& known) const;

  /// "batch.micro"; empty for the outermost value. Found by a search, so for messages only.
  std::string path() const;
  /// A scalar as JSON, cut to 60 bytes; a container or a date by its kind, e.g. "an array".
  std::string shown() const;
  /// "recipe.toml:3:9", or the origin alone when the parser does not report positions.
  std::string where() const;
  std::string where_key(std::size_t index) const;
  [[noreturn]] void refuse(const std::string& what) const;
  /// Refuses with "<path> must be <expected>, not <shown>".
  [[noreturn]] void wrong(const std::string& expected) const;

 private:
  friend class Tree;
  Item(const Tree& tree, const Node& node) : tree_(&tree), node_(&node) {}
  template <class T>
  const T& get(const char* expected) const;
  const Node::Object& object() const;

  const Tree* tree_;
  const Node* node_;
};

/// A whole text. Items point into it, so it does not move.
class Tree {
 public:
  Tree(Source source, Node root) : source_(std::move(source)), root_(std::move(root)) {}
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  Item root() const { return {*this, root_}; }
  const Source& source() const { return source_; }

 private:
  friend class Item;
  Source source_;
  Node root_;
};

}  // namespace assay::spec::document
