"""General values and groups of several releases, intersected person by person.

In every release a person's record is one of those whose published quasi-identifiers cover the person's own. The values
that these records may have are possible; what is possible in all releases is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import AttackResult, Case, Scenario
from noren.audit.bounds import LEVEL, wilson
from noren.audit.class_attack import known_people
from noren.audit.cover import Finder
from noren.audit.linking import _find_in, _searchable
from noren.audit.people import People
from noren.cells import GroupCells, NodeCells, ValueCells
from noren.errors import QueryError
from noren.models.classes import ranges
from noren.release.release import Release

if TYPE_CHECKING:
    from noren.audit.intersection import Intersection


def compose(attack: Intersection, case: Case, others: Sequence[Release]) -> list[AttackResult]:
    """One result for every sensitive column that all releases have."""
    if case.original is None:
        raise QueryError(
            "rows of general values belong to nobody in particular, so an outsider has nobody to look up.",
            hint="Give the original: its people are looked up in every release.",
        )
    releases = [case.release, *others]
    for release in releases:
        _searchable(release)
    people = known_people(case)
    entries = [e for e in case.release.manifest.columns if e.role.needs_requirement and e.form != "terms"]
    shared = [e for e in entries if all(e.name in release.columns for release in others)]
    if not shared:
        raise QueryError("no sensitive column is in all releases.", hint="Name releases of this table.")
    finders = [_find_in(release, people) for release in releases]
    out = []
    with case.stage("Looking people up", len(shared)) as progress:
        for entry in shared:
            d, truth = entry.d, _truth(people, entry.name, entry.values or ())
            possible: NDArray[np.bool_] | None = None
            scenarios: list[Scenario] = []
            occurring = np.bincount(truth[truth >= 0], minlength=d) > 0
            baseline, _ = _left(np.broadcast_to(occurring, (people.table.n, d)), truth, people)
            for number, (release, found) in enumerate(zip(releases, finders, strict=True), 1):
                here = _possible(release, entry.name, entry.values or (), found, people.table.n)
                possible = here if possible is None else possible & here
                figures, frame = _left(possible, truth, people)
                bounds = {"alone": wilson(figures["alone"], people.table.n)}
                name, title = f"releases-{number}", f"{number} releases" if number > 1 else "this release alone"
                scenarios.append(Scenario(name, title, "person", figures, frame, True, bounds))
            out.append(
                AttackResult(
                    attack=attack.name,
                    target=(entry.name,),
                    adversary=attack.adversary,
                    success=attack.success,
                    baseline=baseline,
                    scenarios=tuple(scenarios),
                    titles={"alone": "one value left", "mean_left": "values left", "right": "right guess"},
                    measure="belief",
                    shares=("alone", "mean_belief", "right"),
                    facts={"values": d, "people": people.table.n, "releases": len(releases)},
                    notes=(
                        "a belief is 1 over the values that are left: how often each occurs is not used",
                        f"bounds are Wilson's, {LEVEL:.0%}, as if these people were a sample",
                    ),
                )
            )
            progress(1)
    return out


def _truth(people: People, name: str, labels: Sequence[str]) -> NDArray[np.int64]:
    index = {label: code for code, label in enumerate(labels)}
    place = np.array([index.get(value, -1) for value in people.table.columns[name].domain.values], np.int64)
    return np.asarray(place[people.table.codes[name]])


def _possible(
    release: Release, name: str, labels: Sequence[str], found: tuple[Finder, list[NDArray]], people: int
) -> NDArray[np.bool_]:
    """(people, values of the first release): what somebody who is in this release may have."""
    entry = release.manifest.column(name)
    index = {label: code for code, label in enumerate(labels)}
    place = np.array([index.get(label, len(labels)) for label in entry.values or ()], np.int64)
    cells = release.cells([name])[name]
    row_starts, values = _values(release, name, cells, len(place))
    # one column more for values that the first release does not know, and for people whom nobody covers: all of them
    out = np.zeros((people, len(labels) + 1), bool)
    seen = np.zeros(people, bool)
    finder, codes = found
    for part in finder.candidates(codes, people):
        sets = len(part.bounds) - 1
        inside = np.zeros((sets, len(labels) + 1), bool)
        owner = np.repeat(np.arange(sets), np.diff(part.bounds))
        starts, stops = row_starts[part.order], row_starts[part.order + 1]
        inside[np.repeat(owner, stops - starts), place[values[ranges(starts, stops)]]] = True
        out[part.people] = inside[part.of]
        seen[part.people] = True
    out[~seen] = True
    return out[:, :-1]


def _values(release: Release, name: str, cells: Any, d: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The values that every row may have: row i those from starts[i] to starts[i + 1]."""
    if isinstance(cells, ValueCells):
        return np.arange(len(cells) + 1), cells.data.astype(np.int64)
    if isinstance(cells, NodeCells):
        nodes = release.manifest.column(name).catalogue
        code = cells.data.astype(np.int64)
        runs = ranges(nodes.bounds[code], nodes.bounds[code + 1])
        return np.concatenate(([0], np.cumsum(nodes.sizes[code]))), ranges(nodes.starts[runs], nodes.stops[runs])
    if isinstance(cells, GroupCells):
        table = release.tables[name]
        group = cells.data.astype(np.int64)
        begins, ends = table.bounds[group], table.bounds[group + 1]
        return np.concatenate(([0], np.cumsum(ends - begins))), table.value[ranges(begins, ends)]
    raise QueryError(f"column {name!r} has too many values to intersect.", hint="Give it bins.")


def _left(possible: NDArray[np.bool_], truth: NDArray[np.int64], people: People) -> tuple[dict[str, float], Any]:
    import polars as pl

    left = possible.sum(axis=1)
    known = np.maximum(truth, 0)
    inside = possible[np.arange(len(truth)), known] & (truth >= 0)
    belief = 1 / np.maximum(1, left)
    right = np.where(inside, belief, 0.0)
    figures = {
        "alone": float((left == 1).mean()),
        "mean_left": float(left.mean()),
        "mean_belief": float(belief.mean()),
        "right": float(right.mean()),
        "truth_lost": float((~inside).mean()),
    }
    frame = {"record": people.rows, "left": left, "belief": belief, "right": right}
    return figures, pl.DataFrame({name: pl.Series(part) for name, part in frame.items()})
