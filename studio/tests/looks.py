"""What keeps a reader from a page: pale texts, parts without a name, places that no key reaches."""

from __future__ import annotations

from typing import Any

SKIPPED = "[disabled], .disabled, .q-icon, script, style, .nicegui-error-popup, .n-skip, .q-tooltip, .q-notification"
PALE = """
(skipped) => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const over = (top, under) => {
    const a = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map((i) => top[i] * a + under[i] * (1 - a));
  };
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const pale = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || !box.height || element.closest(skipped)) continue;
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || style.opacity === "0") continue;
    const under = ground(element);
    const [a, b] = [light(over(parse(style.color), under)), light(under)].sort((x, y) => y - x);
    const found = (a + 0.05) / (b + 0.05);
    const words = element.textContent.trim().slice(0, 40);
    if (found < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) pale.push(`${found.toFixed(2)} ${words}`);
  }
  return pale;
}
"""


def barriers(page: Any) -> list[str]:
    """Texts whose contrast with what they stand on is below WCAG's AA, as the browser drew them, and the other serious
    and critical findings of axe-core, which takes what scrolls out of sight for the ground of a text."""
    from axe_playwright_python.sync_playwright import Axe

    pale: list[str] = page.evaluate(PALE, SKIPPED)
    found = Axe().run(page, context=PASSING, options=RULES).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return pale + [f"{one['id']}: {node['html'][:120]}" for one in serious for node in one["nodes"]]


PASSING = {"exclude": [[".q-notification"], [".q-tooltip"]]}
"""What is about to go, and half transparent on its way."""
RULES = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": False}}}
