"""The whole story in a few lines, which stand first on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noren.report.attacks import about
from noren.report.gains import FURTHER, RELEASE, final, headline
from noren.report.render import Line, percent


def in_short(content: Mapping[str, Any]) -> list[Line]:
    """How much was published, whether all checks hold, which attack gains most, and what to read next."""
    published, verdicts = content["published"], content["verdicts"]
    bad = [v for v in verdicts if v["holds"] is False]
    unsure = [v for v in verdicts if v["holds"] is None]
    if not verdicts:
        found = "Nothing was required of the release, so nothing was checked."
    elif bad:
        found = f"{len(bad)} of {len(verdicts)} checks fail: do not rely on this release."
    elif unsure:
        found = f"{len(unsure)} of {len(verdicts)} checks cannot be decided from what is at hand; the others hold."
    else:
        checks = f"All {len(verdicts)} checks hold" if len(verdicts) > 1 else "The one check holds"
        found = f"{checks}, on the published cells."
    return [
        Line(f"Published: {published['records']:,} records with {len(published['columns'])} columns."),
        Line(found),
        *_largest_gain(content["attacks"]["run"]),
        Line("What is not protected stands in a section of its own; read it before you publish or rely on the data."),
    ]


def _largest_gain(run: Sequence[Mapping[str, Any]]) -> list[Line]:
    """How many attacks were simulated, and which of them gains most by its own figure."""
    found = []
    for result in run:
        name, last = headline(result), final(result)
        before = None if name is None else result["baseline"].get(name)
        if name is not None and before is not None and result["attack"] not in FURTHER:
            found.append((last["summary"][name] - before, result, name, before, last))
    if not run:
        return []
    kinds = len({result["attack"] for result in run})
    text = f"{kinds} kinds of attack were simulated." if kinds > 1 else "One kind of attack was simulated."
    if not found:
        return [Line(text)]
    gain, result, name, before, last = max(found, key=lambda one: one[0])
    title = result["titles"].get(name, name.replace("_", " "))
    if gain <= 0:
        return [Line(f"{text} None gains anything by its own figure.")]
    text += f" The {result['attack']} attack on {about(result)} gains most: {title} {percent(before)} before, "
    how = "" if last["name"] in RELEASE else f" ({last['title']})"
    text += f"{percent(last['summary'][name])} after{how}."
    return [Line(text, last["holder_only"])]
