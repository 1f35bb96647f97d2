#include <set>

#include "spec/claims/claim.hpp"
#include "spec/text/toml.hpp"

namespace assay::spec::claims {
namespace {

using document::Item;
using document::Kind;

const std::vector<std::string> row_keys = {"id",      "line",       "what",   "printed", "unit",  "unit_name",
                                           "counted", "rounded_to", "expect", "reading", "under", "cause",
                                           "missing", "repeats",    "twin",   "verdict", "weight"};

std::string text_if_any(Item row, std::string_view key) {
  const auto value = row.find(key);
  return value ? value->text() : "";
}

double real_or(Item row, std::string_view key, double otherwise) {
  const auto value = row.find(key);
  return value ? value->real() : otherwise;
}

Verdict verdict_of(Item row) {
  const Item name = row.at("verdict");
  try {
    return verdict_named(name.text());
  } catch (const SpecError& error) {
    name.refuse(error.what());
  }
}

Claim claim_from(Item row) {
  if (!row.is(Kind::object)) row.wrong("a table");
  row.allow_only(row_keys);
  Claim claim;
  claim.id = row.at("id").text();
  claim.line = static_cast<int>(row.at("line").integer());
  claim.what = row.at("what").text();
  claim.printed = row.at("printed").text();
  claim.unit = real_or(row, "unit", 1);
  claim.unit_name = text_if_any(row, "unit_name");
  const auto counted = row.find("counted"), weight = row.find("weight");
  claim.counted = counted && counted->boolean();
  claim.rounded_to = real_or(row, "rounded_to", 0);
  claim.expect = text_if_any(row, "expect");
  claim.reading = text_if_any(row, "reading");
  claim.under = text_if_any(row, "under");
  claim.cause = text_if_any(row, "cause");
  claim.missing = text_if_any(row, "missing");
  claim.repeats = text_if_any(row, "repeats");
  claim.twin = text_if_any(row, "twin");
  claim.weight = weight ? static_cast<int>(weight->integer()) : 1;
  claim.verdict = verdict_of(row);
  return claim;
}

/// Rules between keys, so that a verdict always says what it stands on.
void check(const Claim& claim, Item row) {
  if (claim.line < 1) row.refuse("line must be 1 or more");
  if (claim.weight < 1 || claim.weight > 3) row.refuse("weight must be 1, 2 or 3");
  if (!(claim.unit > 0)) row.refuse("unit must be above 0");
  if (!(claim.rounded_to >= 0)) row.refuse("rounded_to must be above 0");
  if (!claim.expect.empty() + !claim.missing.empty() + !claim.repeats.empty() != 1)
    row.refuse("exactly one of expect, missing and repeats is wanted");
  if (!claim.repeats.empty()) return;  // its verdict stands on what the first one stands on
  if (claim.under.empty() != claim.reading.empty()) row.refuse("reading and under come together");
  const bool wants_cause =
      claim.verdict == Verdict::contradicts || claim.verdict == Verdict::holds_under_reading;
  if (wants_cause && claim.cause.empty()) row.refuse("this verdict wants a cause");
  if ((claim.verdict == Verdict::not_checkable) == claim.missing.empty())
    row.refuse("\"not checkable\" and missing inputs come together");
}

Input input_from(Item row) {
  if (!row.is(Kind::object)) row.wrong("a table");
  row.allow_only({"id", "line", "source", "what", "value"});
  Input input;
  input.id = row.at("id").text();
  const auto line = row.find("line");
  input.line = line ? static_cast<int>(line->integer()) : 0;
  input.source = text_if_any(row, "source");
  input.what = row.at("what").text();
  input.value = row.at("value").real();
  if ((input.line < 1) == input.source.empty()) row.refuse("one of line, 1 or more, and source is wanted");
  return input;
}

std::string file_name(const std::string& origin) {
  std::string name = origin.substr(origin.find_last_of('/') + 1);
  if (name.ends_with(".toml")) name.resize(name.size() - 5);
  return name;
}

}  // namespace

Document document_from_toml(std::string_view text, const std::string& origin) {
  const document::Tree tree = parse_toml(text, origin, ExitCode::bad_data);
  const Item file = tree.root();
  file.allow_only({"title", "source", "input", "claim"});
  Document document;
  document.key = file_name(origin);
  document.title = file.at("title").text();
  document.source = file.at("source").text();
  const Item rows = file.at("claim", "add a [[claim]]");
  if (!rows.is(Kind::list)) rows.wrong("a list of [[claim]] tables");
  std::set<std::string> ids;
  if (const auto inputs = file.find("input"))
    for (std::size_t i = 0; i < inputs->size(); ++i) {
      document.inputs.push_back(input_from((*inputs)[i]));
      if (!ids.insert(document.inputs.back().id).second) (*inputs)[i].refuse("an id twice");
    }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Claim claim = claim_from(rows[i]);
    check(claim, rows[i]);
    if (!ids.insert(claim.id).second) rows[i].refuse("id \"" + claim.id + "\" occurs twice");
    document.claims.push_back(claim);
  }
  return document;
}

}  // namespace assay::spec::claims
