"""The whole story in a few lines, which stand first on the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noren.report.render import Line
from noren.report.truth import in_words


def in_short(content: Mapping[str, Any]) -> list[Line]:
    """How much was published, whether all checks hold, against whom it stands and against whom not."""
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
        *(Line(one["sentence"]) for one in content["replayed"]),
        *in_words(content["truth"]),
        Line("What is not protected stands in a section of its own; read it before you publish or rely on the data."),
    ]
