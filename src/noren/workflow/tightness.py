"""What a release says of its classes, against the original.

Rows cannot be matched with records any more, but counts can: every class whose interval ends at a value, or whose set
names it, holds somebody who has it. So a value is at least as frequent in the original as there are such classes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bounds import ReportedAxis, ReportedRows
from noren.estimates.counts.rows import Reading
from noren.models.verdict import Verdict
from noren.release.answers import classes_of
from noren.release.release import Release


def tight_columns(release: Release) -> list[str]:
    """Columns of which the release says that certain values occur in every class."""
    return [one.name for one in release.statements if one.tightness in ("ends", "members")]


def tight_verdicts(release: Release, truth: Mapping[str, NDArray[np.int64]]) -> list[Verdict]:
    """One verdict for every such column; `truth` is how often each of its values occurs in the original."""
    out = []
    columns = {one.name: one for one in release.statements if one.tightness is not None}
    cells = release.cells(list(columns)) if columns else {}
    classes = classes_of(release, columns, cells)  # the same for every column
    for name in tight_columns(release):
        statement = columns[name]
        axis = Axis(name, statement, cells[name], classes=classes)
        low, high = ReportedRows.of([ReportedAxis.of(Reading.of(axis), alone=True)]).bounds()
        there = truth[name][: statement.d]
        short = np.maximum(low - there, 0) + np.maximum(there - high - release.suppressed, 0)
        holds = not short.any()
        text = "every value occurs as often as the classes that show it say"
        if not holds:
            text = "classes show values that the original does not have often enough"
        out.append(
            Verdict(
                model="tight-classes",
                column=name,
                required=1.0,
                achieved=float(1 - short.sum() / max(1, release.records)),
                holds=holds,
                basis="the original",
                records=release.records,
                breaches=int(short.sum()),
                statement=text,
            )
        )
    return out
