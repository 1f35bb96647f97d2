#include "impl/report/page.hpp"

namespace assay::impl::report {

// Hues of the Okabe-Ito palette, which stay apart under the common forms of colour blindness; shifted in
// lightness so that lines reach a contrast of 3:1 on both backgrounds.
const char* style() {
  return R"css(
:root {
  color-scheme: light dark;
  --paper: #ffffff; --card: #f7f8fa; --ink: #1b1f24; --soft: #59636e; --rule: #d9dee4; --grid: #e6e9ed;
  --c0: #0067a8; --c1: #c25e00; --c2: #00795a; --c3: #a8478a; --c4: #3391c4; --c5: #8a7400; --c6: #b3362b; --c7: #6b7480;
  --good: #00795a; --bad: #b3362b; --warn: #fff4d6; --warn-ink: #6b4e00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1c2024; --ink: #e8eaed; --soft: #9aa4ae; --rule: #343a41; --grid: #292e34;
    --c0: #5eb0ef; --c1: #f0a04b; --c2: #3cc79b; --c3: #df8fc4; --c4: #8ed0f5; --c5: #d9c34a; --c6: #f0776a; --c7: #98a2ad;
    --good: #3cc79b; --bad: #f0776a; --warn: #3a2f12; --warn-ink: #f3d58a;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 48px; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 16px; margin-bottom: 20px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 32px 0 10px; }
p { margin: 6px 0; } .soft { color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; }
.tile { flex: 1 1 calc(100% / var(--row, 4) - 12px); min-width: 150px; background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 12px 16px; }
.tile b { display: block; font-size: 25px; line-height: 1.25; font-weight: 650; letter-spacing: -0.02em;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile span { color: var(--soft); font-size: 13px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 16px; margin-top: 16px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 12px 14px 10px; min-width: 0; }
figure.bars { grid-column: 1 / -1; }
figcaption { font-weight: 600; margin-bottom: 4px; } .unit { font-weight: 400; color: var(--soft); font-size: 13px; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg text.label { fill: var(--ink); font-size: 12px; paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
.grid { stroke: var(--grid); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1; }
.level { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 5 4; }
.line { fill: none; stroke-width: 1.9; stroke-linejoin: round; stroke-linecap: round; }
.ring { fill: var(--card); stroke: var(--ink); stroke-width: 1.6; }
.faint { fill: none; stroke-width: 1; opacity: 0.45; stroke-linejoin: round; }
.area { stroke: var(--card); stroke-width: 0.5; }
.under { fill: transparent; } .under:hover { fill: var(--soft); opacity: 0.22; }
.choices { margin-top: 20px; font-size: 13px; } .choices label { margin-left: 6px; } .choices span { margin-left: 20px; }
.choices input { vertical-align: -2px; margin: 0 2px 0 0; }
main:not(:has(#x-step:checked)) svg.x-step, main:not(:has(#x-tokens:checked)) svg.x-tokens, main:not(:has(#x-time:checked)) svg.x-time,
main:not(:has(#y-linear:checked)) svg.y-linear, main:not(:has(#y-log:checked)) svg.y-log, main:not(:has(#z-all:checked)) svg.z-all,
main:not(:has(#z-half:checked)) svg.z-half, main:not(:has(#z-tenth:checked)) svg.z-tenth { display: none; }
@supports not selector(:has(a)) { svg.view:not(.x-step.z-all), svg.y-log, .choices { display: none; } }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
.line.dash1 { stroke-dasharray: 9 4; } .line.dash2 { stroke-dasharray: 2 4.5; }
.line, .faint { stroke: var(--c); } .area, .dot { fill: var(--c); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 6px 0 0; padding: 0; font-size: 13px; color: var(--soft); }
.legend li { overflow-wrap: anywhere; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; background: var(--c); }
.key.mark { border-radius: 50%; }
.grid-bars { display: grid; grid-template-columns: fit-content(30%) 1fr auto; align-items: center; gap: 8px 14px; margin: 8px 0; font-size: 14px; overflow-wrap: anywhere; }
.bar-track { display: flex; height: 24px; border-radius: 5px; overflow: hidden; background: var(--grid); }
.part { background: var(--c); }
.bar-total { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
table { border-collapse: collapse; font-size: 14px; width: 100%; }
.scroll { overflow-x: auto; border: 1px solid var(--rule); border-radius: 10px; background: var(--card); }
th, td { padding: 6px 14px; text-align: left; vertical-align: top; border-top: 1px solid var(--rule); }
tr:first-child > th, tr:first-child > td { border-top: 0; }
thead th { color: var(--soft); font-weight: 600; border-bottom: 1px solid var(--rule); }
tbody th { font-weight: 400; color: var(--soft); white-space: nowrap; }
td { overflow-wrap: anywhere; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.differs td { font-weight: 600; }
table.compared { table-layout: fixed; } .compared th:first-child { width: 24%; white-space: normal; overflow-wrap: anywhere; }
.compared td.number, .compared th.number { white-space: normal; overflow-wrap: anywhere; }
code { font: 13px/1.5 ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; }
.good, .bad { font-weight: 600; white-space: nowrap; } .good { color: var(--good); } .bad { color: var(--bad); }
.warning { background: var(--warn); color: var(--warn-ink); border-radius: 8px; padding: 8px 14px; margin: 8px 0; overflow-wrap: anywhere; }
details summary { cursor: pointer; } details[open] summary { margin-bottom: 8px; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 0 16px; align-items: start; }
footer { margin-top: 36px; color: var(--soft); font-size: 13px; }
@media (max-width: 600px) {
  main { padding: 20px 14px 36px; } th, td { padding: 5px 7px; } table { font-size: 13px; } code { font-size: 12px; }
  .choices span { display: block; }
}
@media print { main { max-width: none; padding: 0; } figure, .tile, tr { break-inside: avoid; } }
)css";
}

}  // namespace assay::impl::report
