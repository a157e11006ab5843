"""How the page looks: on a screen, on paper, in any browser, without a network.

Every text has a contrast of at least 4.5 to 1 with what it stands on, and nothing is said by colour alone.
"""

from __future__ import annotations

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif; color: #1b1f24;
       background: #fff; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; border-bottom: 1px solid #8c959f; padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p, li { max-width: 48rem; }
li { margin: .25rem 0; }
nav h2 { font-size: 1rem; border: 0; margin: 1.2rem 0 .2rem; }
nav ol { margin: 0; columns: 2; column-gap: 3rem; max-width: 48rem; }
a { color: #0b4f8a; }
a:focus, .wide:focus { outline: 3px solid #0b4f8a; outline-offset: 2px; }
.skip { position: absolute; left: -999rem; }
.skip:focus { position: static; }
.mark { display: inline-block; background: #8b2635; color: #fff; padding: 0 .5rem; border: 1px solid #8b2635;
        border-radius: .2rem; font-weight: 600; font-size: .85em; white-space: nowrap; }
.mark.open { background: #fff; color: #1a5c2e; border-color: #1a5c2e; }
.short { border: 2px solid #57606a; padding: .2rem 1rem; margin: 1rem 0; }
.short h2 { border: 0; margin: .6rem 0 .2rem; font-size: 1.1rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #afb8c1; vertical-align: top;
         overflow-wrap: break-word; max-width: 28rem; }
thead th { border-bottom: 2px solid #57606a; vertical-align: bottom; }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 5.5rem; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: normal; }
figure { margin: 1.2rem 0; }
figure svg, figure img { max-width: 100%; height: auto; display: block; }
figcaption { font-size: .9rem; color: #424a53; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; font-size: .88em; background: #f1f3f5;
       padding: 0 .25rem; overflow-wrap: anywhere; }
pre { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; font-size: .82rem; line-height: 1.4;
      background: #f6f8fa; border: 1px solid #afb8c1; padding: .6rem .8rem; white-space: pre-wrap;
      overflow-wrap: anywhere; }
footer { margin-top: 3rem; border-top: 1px solid #8c959f; font-size: .9rem; color: #424a53; }
@media (max-width: 40rem) { nav ol { columns: 1; } body { margin-top: 1rem; } }
@page { size: A4; margin: 18mm 15mm 16mm; @bottom-right { content: counter(page) " / " counter(pages);
        font: 9pt sans-serif; color: #424a53; } }
@media print {
  body { margin: 0; padding: 0; max-width: none; font-size: 10pt; }
  h1 { font-size: 18pt; } h2 { font-size: 13pt; margin-top: 14pt; } h3 { font-size: 11pt; }
  h1, h2, h3, caption { break-after: avoid; }
  nav, .skip { display: none; }
  p, li { max-width: none; orphans: 3; widows: 3; }
  a { color: inherit; text-decoration: none; }
  .mark { background: #fff; color: #8b2635; border: 1.5pt solid #8b2635; }
  .wide { overflow: visible; }
  table { font-size: 8.5pt; } th, td { padding: 2pt 4pt; max-width: none; } tbody th { min-width: 0; }
  thead { display: table-header-group; }
  tr, svg, .short { break-inside: avoid; }
  figcaption { font-size: 9pt; break-before: avoid; }
  code, pre { background: #fff; }
  figure svg { max-height: 225mm; }
}
"""

HOLDER_SHEETS = """
@page { @top-right { content: "Holder only: do not publish"; font: bold 9pt sans-serif; color: #8b2635; } }
"""
