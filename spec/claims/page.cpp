#include "spec/claims/page.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "spec/text/quantity.hpp"

namespace assay::spec::claims {
namespace {

struct Entry {
  const Document* document;
  const Claim* claim;
  Judgement judgement;
};

/// Counted among the verdicts: not the number printed again, nor the other side of a comparison.
bool stands_for_itself(const Claim& claim) { return claim.repeats.empty() && claim.twin.empty(); }

/// What a reader has to act on first.
int urgency(Verdict verdict) {
  switch (verdict) {
    case Verdict::contradicts:
      return 0;
    case Verdict::holds_under_reading:
      return 1;
    case Verdict::not_checkable:
      return 2;
    case Verdict::holds:
      return 3;
  }
  return 3;
}

double distance(const Judgement& judgement) {
  return judgement.ratio && *judgement.ratio > 0 ? std::abs(std::log(*judgement.ratio)) : 0;
}

bool before(const Entry& a, const Entry& b) {
  if (a.claim->weight != b.claim->weight) return a.claim->weight > b.claim->weight;
  const int left = urgency(a.judgement.verdict), right = urgency(b.judgement.verdict);
  if (left != right) return left < right;
  return distance(a.judgement) > distance(b.judgement);
}

/// A recomputed number in the unit of the printed one: four significant digits, grouped where it is large.
std::string number(double value) {
  if (value == 0) return "0";
  const int digits = 3 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (std::abs(value) >= 1e15 || std::abs(value) < 1e-4) return scientific(value, 3);
  if (digits > 0) return fixed(value, digits);
  return grouped(static_cast<std::int64_t>(std::llround(value)));
}

std::string recomputed(const Interval& interval, const Claim& claim) {
  const std::string low = number(interval.low / claim.unit), high = number(interval.high / claim.unit);
  return low == high ? low : low + " to " + high;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
  return out;
}

std::string verdict_cell(const Entry& entry) {
  const Claim& claim = *entry.claim;
  switch (entry.judgement.verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::holds_under_reading:
      return "holds under: " + claim.reading;
    case Verdict::contradicts:
      return "**contradicts**" +
             (entry.judgement.ratio ? ", " + fixed(*entry.judgement.ratio, 3) + " times it" : "");
    case Verdict::not_checkable:
      return "not checkable";
  }
  return "";
}

std::string why(const Claim& claim) {
  if (!claim.missing.empty()) return "missing: " + claim.missing;
  if (claim.twin.empty()) return claim.cause;
  return claim.cause + (claim.cause.empty() ? "" : "; ") + "the other side of `" + claim.twin + "`";
}

std::string row(const Entry& entry) {
  const Claim& claim = *entry.claim;
  const std::string behind = claim.unit_name.empty() ? "" : " " + claim.unit_name;
  const std::string value =
      entry.judgement.expected ? recomputed(*entry.judgement.expected, claim) + behind : "";
  const std::string basis = claim.expect.empty() ? "" : "`" + claim.expect + "`";
  return "| " + entry.document->key + ":" + std::to_string(claim.line) + " | " + claim.id + " | " +
         escaped(claim.what) + " | " + escaped(claim.printed) + behind + " | " + value + " | " +
         escaped(verdict_cell(entry)) + " | " + escaped(why(claim)) + " | " + escaped(basis) + " |\n";
}

constexpr std::array<std::string_view, 7> columns = {"numbers",         "repeats",    "twins",        "hold",
                                                     "under a reading", "contradict", "not checkable"};

using Row = std::array<std::size_t, columns.size()>;

Row counts_of(const Document& document, const std::vector<Entry>& entries) {
  Row n{};
  for (const Entry& entry : entries) {
    if (entry.document != &document) continue;
    ++n[0];
    if (!entry.claim->repeats.empty())
      ++n[1];
    else if (!entry.claim->twin.empty())
      ++n[2];
    else
      ++n[3 + static_cast<std::size_t>(entry.judgement.verdict)];
  }
  return n;
}

std::string counts(const std::vector<Document>& documents, const std::vector<Entry>& entries) {
  std::string text = "| document |", rule = "|---|";
  for (const std::string_view column : columns) {
    text += " " + std::string(column) + " |";
    rule += "---:|";
  }
  text += "\n" + rule + "\n";
  const auto line = [](const std::string& name, const Row& n) {
    std::string cells = "| " + name;
    for (const std::size_t count : n) cells += " | " + std::to_string(count);
    return cells + " |\n";
  };
  Row all{};
  for (const Document& document : documents) {
    const Row n = counts_of(document, entries);
    for (std::size_t i = 0; i < n.size(); ++i) all[i] += n[i];
    text += line(document.key + ": " + escaped(document.title), n);
  }
  return text + line("**all**", all);
}

/// A name right before a parenthesis.
bool calls_a_function(const std::string& expression) {
  for (std::size_t i = expression.find('('); i != std::string::npos; i = expression.find('(', i + 1))
    if (i > 0 && std::isalnum(static_cast<unsigned char>(expression[i - 1]))) return true;
  return false;
}

/// How much of the judged rests on `spec/`, and how much only on other numbers of its own document.
std::string basis(const std::vector<Entry>& entries) {
  std::size_t judged = 0, by_spec = 0;
  for (const Entry& entry : entries)
    if (stands_for_itself(*entry.claim) && !entry.claim->expect.empty()) {
      ++judged;
      if (calls_a_function(entry.claim->expect)) ++by_spec;
    }
  return "Of the " + std::to_string(judged) + " recomputed numbers, " + std::to_string(by_spec) +
         " rest on a function of `spec/`; the other " + std::to_string(judged - by_spec) +
         " compare numbers of their document with each other.\n";
}

/// An input as it was given: whole numbers in full.
std::string exact(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? grouped(static_cast<std::int64_t>(value)) : number(value);
}

/// Inputs, which are judged by nothing: a reader has to see what was taken.
std::string inputs(const std::vector<Document>& documents) {
  std::string text =
      "\n## Inputs\n\nNumbers that the above rest on and that nothing judges.\n\n"
      "| location | input | value |\n|---|---|---:|\n";
  for (const Document& document : documents)
    for (const Input& input : document.inputs)
      text += "| " + document.key +
              (input.line ? ":" + std::to_string(input.line) : ", " + escaped(input.source)) + " | `" +
              input.id + "`: " + escaped(input.what) + " | " + exact(input.value) + " |\n";
  return text;
}

std::string repeats(const std::vector<Entry>& entries) {
  std::string text =
      "\n## Printed again\n\nThe same number elsewhere, judged with the first.\n\n"
      "| location | quantity | printed | verdict | first printed as |\n|---|---|---:|---|---|\n";
  for (const Entry& entry : entries) {
    const Claim& claim = *entry.claim;
    if (claim.repeats.empty()) continue;
    text += "| " + entry.document->key + ":" + std::to_string(claim.line) + " | " + escaped(claim.what) +
            " | " + escaped(claim.printed) + (claim.unit_name.empty() ? "" : " " + claim.unit_name) + " | " +
            std::string(to_string(entry.judgement.verdict)) + " | `" + claim.repeats + "` |\n";
  }
  return text;
}

}  // namespace

std::string page(const std::vector<Document>& documents) {
  std::vector<Entry> entries;
  for (const Document& document : documents)
    for (const Claim& claim : document.claims) entries.push_back({&document, &claim, judge(claim, document)});
  std::string text =
      "# Published numbers, recomputed\n\n"
      "<!-- Written by `ci/claims` from golden/claims; do not edit. -->\n\n"
      "Each checkable number of the documents below, recomputed from what it rests on by functions of "
      "`spec/`. "
      "\"Recomputed\" takes the sense a reader would: all GPUs, the dense peak, `exact` FLOPs. A number that "
      "differs "
      "there and agrees in another sense *holds under* that reading. Rounding is honoured: a number "
      "contradicts only "
      "outside what its digits leave open. *Repeats* print the same number again; *twins* are the other side "
      "of "
      "one comparison, as a rate and the MFU made of it: neither is counted among the verdicts. How claims "
      "are written: "
      "[spec/claims/claims.md](../spec/claims/claims.md).\n\n";
  text += counts(documents, entries) + "\n" + basis(entries) + "\nSources\n\n";
  for (const Document& document : documents) text += "- `" + document.key + "`: " + document.source + "\n";
  std::stable_sort(entries.begin(), entries.end(), before);
  static constexpr const char* headings[] = {"Details", "Numbers that support others",
                                             "Numbers that decisions rest on"};
  int weight = 0;
  for (const Entry& entry : entries) {
    if (!entry.claim->repeats.empty()) continue;
    if (entry.claim->weight != weight) {
      weight = entry.claim->weight;
      text += std::string("\n## ") + headings[weight - 1] +
              "\n\n| location | id | quantity | printed | recomputed | verdict | why | from "
              "|\n|---|---|---|---:|---:|---|---|---|\n";
    }
    text += row(entry);
  }
  return text + repeats(entries) + inputs(documents);
}

}  // namespace assay::spec::claims
