// How the report looks. Colours are named by what they show; every line style also differs in
// weight, dash or marks.
#pragma once

#include <string_view>

namespace strata::train {

inline constexpr std::string_view style_sheet = R"css(
:root {
  --page: #fbfaf7; --panel: #ffffff; --text: #23262b; --quiet: #5d636d; --rule: #dfddd6;
  --grid: #ebe9e3; --train: #1f6391; --validation: #b4500f; --source: #3b7a3f; --skipped: #a32135;
  --note: #fdf3dc;
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16181b; --panel: #1d2024; --text: #e4e3df; --quiet: #a0a6b0; --rule: #34383e;
    --grid: #2a2e33; --train: #74b3e3; --validation: #f0985a; --source: #86c98a;
    --skipped: #f0788a; --note: #332c1b;
  }
}
* { box-sizing: border-box; }
html { font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
body {
  margin: 0 auto; padding: 2.5rem 1rem 3rem; max-width: 60rem; background: var(--page);
  color: var(--text); overflow-wrap: anywhere; -webkit-text-size-adjust: 100%;
}
h1 { margin: 0.1rem 0; font-size: 2rem; line-height: 1.2; font-weight: 650; letter-spacing: -0.015em; }
h2 { margin: 0 0 0.6rem; font-size: 1.2rem; line-height: 1.3; font-weight: 650; }
h3 { margin: 0 0 0.4rem; font-size: 1rem; font-weight: 600; }
p { margin: 0 0 0.8rem; }
.over, .under, .caption, figcaption, footer { color: var(--quiet); font-size: 0.9rem; }
.over { margin: 0; }
section { margin: 2.75rem 0 0; }
.prose p, .caption, figcaption { max-width: 44rem; }
.note {
  margin: 1rem 0 0; padding: 0.6rem 0.9rem; background: var(--note); border-left: 3px solid
  var(--validation); border-radius: 3px; font-size: 0.95rem;
}
.headline {
  display: grid; grid-template-columns: repeat(3, 1fr); gap: 1px; margin: 1.6rem 0 0;
  background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; overflow: hidden;
}
.headline div { padding: 0.9rem 1.1rem; outline: 1px solid var(--rule); }
.headline dt { color: var(--quiet); font-size: 0.875rem; }
.headline dd {
  margin: 0; font-size: 1.7rem; line-height: 1.25; font-weight: 600;
  font-variant-numeric: tabular-nums;
}
.headline small {
  display: block; min-height: 1.35em; color: var(--quiet); font-size: 0.8125rem; font-weight: 400;
  line-height: 1.35;
}
figure { margin: 0; }
figcaption { margin-top: 0.5rem; }
figure svg.wide, figure svg.narrow, figure svg.small { width: 100%; height: auto; overflow: visible; }
figure svg.wide { display: block; }
figure svg.narrow { display: none; }
figure svg.small { display: block; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 2rem; }
.tick, .title, .name { font-size: 12.5px; fill: var(--quiet); font-variant-numeric: tabular-nums; }
.name {
  fill: var(--source); font-weight: 600; paint-order: stroke; stroke: var(--page);
  stroke-width: 4px; stroke-linejoin: round;
}
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--quiet); stroke-width: 1; fill: none; opacity: 0.6; }
.curve { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.curve.raw { stroke: var(--train); stroke-width: 1; opacity: 0.35; }
.curve.smooth { stroke: var(--train); stroke-width: 2; }
svg.small .curve.smooth { stroke-width: 1.5; }
.curve.marked { stroke: var(--validation); stroke-width: 1.3; }
.ring { fill: var(--page); stroke: var(--validation); stroke-width: 1.8; }
.ring.smooth, .ring.raw { stroke: var(--train); }
.level { fill: none; stroke: var(--source); stroke-width: 1.7; stroke-dasharray: 7 5; }
.skipped { fill: var(--skipped); }
.legend {
  display: flex; flex-wrap: wrap; gap: 0.1rem 1.4rem; margin: 0 0 0.6rem; padding: 0;
  list-style: none; font-size: 0.9rem;
}
.legend svg { margin-right: 0.45rem; vertical-align: -1px; overflow: visible; }
table { border-collapse: collapse; font-size: 0.925rem; font-variant-numeric: tabular-nums; }
th { font-weight: 400; text-align: left; color: var(--quiet); }
thead th { font-weight: 600; }
th, td { padding: 0.32rem 1rem 0.32rem 0; vertical-align: top; border-bottom: 1px solid var(--rule); }
tfoot th, tfoot td { border-bottom: 0; font-weight: 600; color: inherit; }
th.number, td.number { text-align: right; white-space: nowrap; }
.facts, .memory { width: 100%; }
.facts td { padding-right: 0; text-align: right; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(16.5rem, 1fr)); gap: 0 2.5rem; }
.flags tbody { display: grid; grid-template-columns: repeat(auto-fit, minmax(16.5rem, 1fr)); gap: 0 2.5rem; }
.flags tr { display: flex; justify-content: space-between; border-bottom: 1px solid var(--rule); }
.flags th, .flags td { border: 0; }
.flags th { flex: none; max-width: 60%; font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas,
  "Liberation Mono", monospace; font-size: 0.85rem; }
.memory th { white-space: nowrap; }
.memory .bar { width: 55%; vertical-align: middle; }
.bar svg { display: block; width: 100%; height: 0.7rem; }
.bar rect { fill: var(--train); opacity: 0.75; }
.memory td:last-child, .memory th:last-child { padding-right: 0; }
.verdicts { margin-bottom: 0.6rem; }
.verdicts th, .verdicts td { padding-left: 0.4rem; }
.samples { border-top: 1px solid var(--rule); }
details { border-bottom: 1px solid var(--rule); }
summary { padding: 0.55rem 0; cursor: pointer; font-weight: 600; }
summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--train); outline-offset: 2px; }
.numbers { margin-top: 1.2rem; border-top: 1px solid var(--rule); }
.scroll { max-height: 24rem; overflow: auto; padding-bottom: 0.8rem; }
.verdict { margin-left: 0.9rem; color: var(--quiet); font-weight: 400; font-size: 0.9rem; }
pre, code { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, "Liberation Mono", monospace; }
code { font-size: 0.9em; }
pre {
  margin: 0 0 1rem; padding: 0.9rem 1.1rem; background: var(--panel); border: 1px solid var(--rule);
  border-radius: 6px; font-size: 0.875rem; line-height: 1.6; white-space: pre-wrap;
}
footer { margin-top: 3rem; padding-top: 0.8rem; border-top: 1px solid var(--rule); }
@media (max-width: 40rem) {
  body { padding-top: 1.4rem; }
  h1 { font-size: 1.6rem; }
  .headline { grid-template-columns: 1fr 1fr; }
  .headline div { padding: 0.7rem 0.8rem; }
  .headline dd { font-size: 1.35rem; }
  figure svg.wide { display: none; }
  figure svg.narrow { display: block; }
  .pair { grid-template-columns: minmax(0, 1fr); }
  .memory .bar { width: 30%; }
  .memory .share { display: none; }
  .memory th:last-child, .memory tfoot td:last-child { display: none; }
  .memory th { white-space: normal; }
  .verdict { display: block; margin: 0 0 0 1.1rem; }
}
@media print { body { max-width: none; } .scroll { max-height: none; } }
)css";

}  // namespace strata::train
