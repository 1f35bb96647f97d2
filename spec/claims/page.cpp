#include "spec/claims/page.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "spec/text/quantity.hpp"

namespace assay::spec::claims {
namespace {

struct Entry {
  const Document* document;
  const Claim* claim;
  Judgement judgement;
};

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

std::string row(const Entry& entry) {
  const Claim& claim = *entry.claim;
  const std::string behind = claim.unit_name.empty() ? "" : " " + claim.unit_name;
  const std::string value =
      entry.judgement.expected ? recomputed(*entry.judgement.expected, claim) + behind : "";
  const std::string why = claim.missing.empty() ? claim.cause : "missing: " + claim.missing;
  const std::string basis = claim.expect.empty() ? "" : "`" + claim.expect + "`";
  return "| " + entry.document->key + ":" + std::to_string(claim.line) + " | " + escaped(claim.what) + " | " +
         escaped(claim.printed) + behind + " | " + value + " | " + escaped(verdict_cell(entry)) + " | " +
         escaped(why) + " | " + escaped(basis) + " |\n";
}

std::string counts(const std::vector<Document>& documents, const std::vector<Entry>& entries) {
  std::string text = "| document | claims | hold | hold under a reading | contradict | not checkable |\n";
  text += "|---|---:|---:|---:|---:|---:|\n";
  std::array<std::size_t, 5> all{};
  const auto line = [](const std::string& name, const std::array<std::size_t, 5>& n) {
    std::string cells = "| " + name;
    for (const std::size_t count : n) cells += " | " + std::to_string(count);
    return cells + " |\n";
  };
  for (const Document& document : documents) {
    std::array<std::size_t, 5> n{};
    for (const Entry& entry : entries)
      if (entry.document == &document) {
        ++n[0];
        ++n[1 + static_cast<std::size_t>(entry.judgement.verdict)];
      }
    for (std::size_t i = 0; i < n.size(); ++i) all[i] += n[i];
    text += line(document.key + ": " + escaped(document.title), n);
  }
  return text + line("**all**", all);
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
      "outside what its digits leave open. How claims are written: "
      "[spec/claims/claims.md](../spec/claims/claims.md).\n\n";
  text += counts(documents, entries) + "\nSources\n\n";
  for (const Document& document : documents) text += "- `" + document.key + "`: " + document.source + "\n";
  std::stable_sort(entries.begin(), entries.end(), before);
  static constexpr const char* headings[] = {"Details", "Numbers that support others",
                                             "Numbers that decisions rest on"};
  int weight = 0;
  for (const Entry& entry : entries) {
    if (entry.claim->weight != weight) {
      weight = entry.claim->weight;
      text += std::string("\n## ") + headings[weight - 1] +
              "\n\n| place | quantity | printed | recomputed | verdict | why | from "
              "|\n|---|---|---:|---:|---|---|---|\n";
    }
    text += row(entry);
  }
  return text;
}

}  // namespace assay::spec::claims
