"""The risk of the raw table, by the verb `risk`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from noren.progress import Stage

TOP = 8


def raw_risk(stage: Stage, place: str, policy: dict[str, Any], base: str) -> dict[str, Any]:
    """What the table gives away as it is, in figures for a page."""
    from noren import Policy, risk

    found = risk(place, Policy(**policy, base=Path(base)), stage=stage)
    return {
        "people": found.people,
        "rows": found.rows,
        "quasi": list(found.quasi),
        "uniques": found.uniques,
        "unique_share": found.unique_share,
        "smallest": found.smallest,
        "mean_risk": found.mean_risk,
        "looks": [[one.words, one.people, one.least] for one in found.looks],
        "top": [[list(one.columns), one.alone, one.share] for one in found.top(TOP)],
        "columns": [[c.column, c.distinct, c.alone, c.contribution, c.uniques_without] for c in found.columns],
        "verdicts": [
            {"column": v.column, "model": v.model, "required": v.required, "achieved": v.achieved,
             "breaches": v.breaches, "records": v.records, "holds": v.holds}
            for v in found.verdicts
        ],
        "skipped": dict(found.skipped),
        "notes": list(found.notes),
    }  # fmt: skip
