"""The original beside a release: every person's true values as codes of the published domains, and who has which row.

Nothing of it may leave the holder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Case
from noren.cells import Cells, OpenCells, ValueCells
from noren.engines.local import LocalEngine
from noren.errors import DataError
from noren.pipeline.anonymize import profile_source
from noren.policy.reading import dropping, open_table
from noren.policy.resolve import resolve
from noren.release.manifest import ColumnEntry
from noren.release.release import Release

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Original:
    """The people of the original in its order, apart from those that the policy drops for missing values."""

    records: int
    codes: Mapping[str, NDArray[np.int64]]
    """True values as codes of the published domain, by column."""
    keys: pl.DataFrame
    """What every person has in the columns that are published exactly, as text."""


def read_original(case: Case) -> Original:
    """The original of a case that publishes one row per person, read once for all attacks."""
    if "original" not in case.memory:
        case.memory["original"] = _read(case)
    found: Original = case.memory["original"]
    return found


def _read(case: Case) -> Original:
    policy, release = case.policy, case.release
    assert policy is not None
    source = open_table(case.original, policy)
    drop = dropping(policy, source.columns)
    profile = profile_source(policy, source, drop, case.stage)
    columns = resolve(policy, source.name, source.columns, profile)
    lacking = [entry.name for entry in release.manifest.columns if entry.name not in columns]
    if lacking:
        raise DataError(f"the policy does not publish {lacking[0]!r}.", hint="Give the policy of the release.")
    left = release.manifest.suppressed
    if profile.records != release.records + left:
        raise DataError(
            f"the original has {profile.records} records, the release {release.records} and {left} left out.",
            hint="Give the table and the policy that the release was made from.",
        )
    wanted = [entry for entry in release.manifest.columns if entry.form in ("set", "member", "value", "open")]
    domains = {e.name: domain for e in wanted if (domain := columns[e.name].domain) is not None}
    loose = [e.name for e in wanted if e.name not in domains]
    parts: dict[str, list[Any]] = {e.name: [] for e in wanted}
    extra = [name for name in drop if name not in parts]
    with case.stage("Reading codes", profile.records) as progress:
        for batch in LocalEngine().encode(
            source, domains, open_columns=[*loose, *extra], drop_missing=drop, progress=progress
        ):
            for name, part in parts.items():
                part.append(batch.open[name] if name in loose else batch.codes[name])
    codes: dict[str, NDArray[np.int64]] = {}
    cells: dict[str, Cells] = {}
    for entry in wanted:
        if entry.name in loose:
            cells[entry.name] = OpenCells.concat(parts[entry.name])
            continue
        index = entry.domain.index
        place = np.array([index.get(value, -1) for value in domains[entry.name].values], np.int64)
        codes[entry.name] = place[np.concatenate(parts[entry.name])]
        if (codes[entry.name] < 0).any():
            raise DataError(
                f"column {entry.name!r} of the original holds values that the release does not know.",
                hint="Give the table and the policy that the release was made from.",
            )
        if entry.form == "value":
            cells[entry.name] = ValueCells(entry.d, codes[entry.name])
    return Original(profile.records, codes, texts([e for e in wanted if e.name in cells], cells))


def exact_entries(release: Release) -> list[ColumnEntry]:
    """The columns that a release publishes as they are."""
    return [entry for entry in release.manifest.columns if entry.form in ("value", "open")]


def exact_texts(release: Release, names: Sequence[str] | None = None) -> pl.DataFrame:
    """What every published row says in these exact columns, as text."""
    entries = [e for e in exact_entries(release) if names is None or e.name in names]
    return texts(entries, release.cells([e.name for e in entries]) if entries else {})


def texts(entries: Sequence[ColumnEntry], cells: Mapping[str, Cells]) -> pl.DataFrame:
    """Cells as texts that mean the same in another release, whatever its codes are."""
    import polars as pl

    out = {}
    for entry in entries:
        part = cells[entry.name]
        if isinstance(part, OpenCells):
            found = pl.from_arrow(part.data)
            assert isinstance(found, pl.Series)
            out[entry.name] = found.cast(pl.String)
        elif isinstance(part, ValueCells):
            out[entry.name] = pl.Series(entry.values, dtype=pl.String).gather(part.data.astype(np.uint32))
    return pl.DataFrame(out)


def unique_pairs(left: pl.DataFrame, right: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of both tables that agree in all columns and are alone with that in either: who can be recognised."""
    import polars as pl

    names = left.columns
    nobody = np.empty(0, np.int64)
    if not names:
        return nobody, nobody
    sides = []
    for frame, row in ((left, "\0left"), (right.select(names), "\0right")):
        once = frame.with_row_index(row).group_by(names).agg(pl.col(row).first(), pl.len().alias("\0rows"))
        sides.append(once.filter(pl.col("\0rows") == 1).drop("\0rows"))
    both = sides[0].join(sides[1], on=names, how="inner", nulls_equal=True).sort("\0left")
    return both["\0left"].to_numpy().astype(np.int64), both["\0right"].to_numpy().astype(np.int64)
