"""Opens a table: a preview, the values of every column, and the policy that `init` drafts, with its reasons."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from noren.policy import Proposal, Seen, study, written
from noren.progress import Stage
from noren.schema import CALENDAR, NUMERIC
from noren.sources import Source, open_source
from noren_studio import texts
from noren_studio.session import shown

CELLS = 2_000_000
"""Most cells that are examined when a table is opened; of a larger table, the first rows."""
PREVIEW_CELLS = 40_000
PREVIEW_ROWS = 1_000
BARS = 14
MOST_VALUES = 3_000
"""Most values of a column for which a hierarchy can be edited."""
LISTED = 12
"""Most values of a column that a page lists."""


def open_table(stage: Stage, place: str, folder: str, whole: bool = False) -> dict[str, Any]:
    """Return what a holder first sees of a table. `whole`: examine all rows, even of a long table.

    The values of every column and their counts are written into `folder`, for the editor of hierarchies.
    """
    from noren.workflow import advise

    with stage("Reading", None):
        source = open_source(place)
        some, rows = (source, source.rows) if whole else _first_rows(source)
    with stage("Counting values", None):
        studied = study(some)
    with stage("Drafting a policy", None):
        made = advise(studied)
        text = written(studied, made)
    sampled = rows is None and not whole
    counted = {name: _counted(column) for name, column in studied.columns.items()}
    counts = Path(folder) / f"counts-{hashlib.sha256(place.encode()).hexdigest()[:16]}.json"
    counts.write_text(json.dumps(counted), encoding="utf-8")
    return {
        "place": place,
        "counts": str(counts),
        "name": shown(place),
        "rows": studied.profile.records,
        "rows_total": source.rows if sampled else studied.profile.records,
        "sampled": sampled,
        "columns": [_column(studied.columns[name], made) for name in source.columns],
        "preview": _preview(some),
        "policy": tomllib.loads(text),
        "people": {**made.people, "why": texts.without_lines(made.why_people)},
        "together": [
            {"columns": list(group.names), "why": _why_together(group.names, made)} for group in made.together
        ],
        "notes": list(source.notes),
    }


def _counted(column: Seen) -> dict[str, Any]:
    """Return the most frequent values, in their order, with their counts and the number of all values."""
    found = column.counted
    order = sorted(range(len(found.values)), key=lambda at: -int(found.counts[at]))[:MOST_VALUES]
    kept = sorted(order)
    return {
        "values": [found.values[at] for at in kept],
        "counts": [int(found.counts[at]) for at in kept],
        "all": len(found.values),
    }


def _first_rows(source: Source) -> tuple[Source, int | None]:
    """Return the table in memory and its number of rows; of a long table, its first rows and None."""
    import pyarrow as pa

    from noren.sources import FrameSource

    most = max(1, CELLS // max(1, len(source.columns)))
    parts, rows = [], 0
    first = getattr(source, "first", source.batches)  # where a source has a quicker way to a few rows
    for batch in first(source.columns):
        parts.append(batch.slice(0, most - rows))
        rows += parts[-1].num_rows
        if rows >= most:
            break
    if not parts:
        return source, source.rows
    some = FrameSource(pa.Table.from_batches(parts))
    some.name = source.name
    if hasattr(source, "hints"):
        some.hints = source.hints  # type: ignore[attr-defined]
    ended = rows < most or source.rows == rows
    return some, rows if ended else None


def _column(column: Seen, made: Proposal) -> dict[str, Any]:
    guess = made.guesses[column.name]
    counts = column.column.counts
    most = sorted(counts.items(), key=lambda item: -item[1])[:LISTED]
    bars, said = _bars(column)
    return {
        "name": column.name,
        "kind": "text" if column.kind == "string" else column.kind,
        "evidence": column.evidence,
        "distinct": None if column.column.is_open else column.distinct,
        "missing": column.column.missing,
        "why": guess.why,
        "role": guess.role.value,
        "values": [[text, count] for text, count in most],
        "bars": bars,
        "bars_say": said,
    }


def _bars(column: Seen) -> tuple[list[int], str]:
    """Return the heights of a small histogram and its description: numbers in equal intervals, dates in groups of
    equally many dates, other values by frequency."""
    import numpy as np

    counts = column.column.counts
    if not counts:
        return [], ""
    if column.kind in NUMERIC and column.distinct > BARS:
        found = column.counted
        heights, edges = np.histogram(found.numbers, bins=BARS, weights=found.counts)
        return [int(height) for height in heights], f"{edges[0]:g} to {edges[-1]:g}"
    if column.kind in CALENDAR and column.distinct > BARS:
        ordered = [count for _, count in sorted(counts.items())]
        parts = np.array_split(np.array(ordered), BARS)
        return [int(part.sum()) for part in parts], f"{min(counts)} to {max(counts)}"
    heights_ = sorted(counts.values(), reverse=True)
    return heights_[:BARS], f"{min(BARS, len(heights_))} most common of {len(heights_):,} values"


def _preview(source: Source) -> dict[str, Any]:
    """Return the first rows as texts."""
    most = max(1, min(PREVIEW_ROWS, PREVIEW_CELLS // max(1, len(source.columns))))
    rows: list[list[Any]] = []
    for batch in source.batches(source.columns):
        columns = [_texts(batch.column(name).slice(0, most - len(rows)).to_pylist()) for name in source.columns]
        rows += [list(row) for row in zip(*columns, strict=True)]
        if len(rows) >= most:
            break
    return {"columns": list(source.columns), "rows": rows}


def _texts(cells: Sequence[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]


def _why_together(names: Sequence[str], made: Proposal) -> str:
    return made.guesses[names[0]].why


def roles(policy: Mapping[str, Any]) -> dict[str, str]:
    """Return the role of every column, whether the policy gives it as a text or in a table."""
    given: Mapping[str, Any] = policy.get("attributes", {})
    return {n: one if isinstance(one, str) else one.get("role", "") for n, one in given.items() if n != "together"}


RECORDS = 5_000


def make_demo(stage: Stage, folder: str) -> str:
    """Write a made-up hospital table, and return its path."""
    import pyarrow.csv as pv

    from noren.cli import hospital_table

    target = Path(folder) / "demo-hospital.csv"
    with stage("Making the demo", None):
        pv.write_csv(hospital_table(RECORDS), target)
    return str(target)
