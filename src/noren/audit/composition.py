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
from noren.audit.people import People, known_people
from noren.audit.told import find_people, searchable, secret_statements
from noren.cells import Statement
from noren.errors import QueryError
from noren.ragged import chosen, owners
from noren.release.release import Release
from noren.table.finding import Finder

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
    names = [searchable(release) for release in releases]
    people = known_people(case)
    secrets = secret_statements(case.release)
    if large := [one.name for one in secrets if one.column.is_open]:
        raise QueryError(f"column {large[0]!r} has too many values to intersect.", hint="Give it bins.")
    shared = [one for one in secrets if all(one.name in release.columns for release in others)]
    if not shared:
        raise QueryError("no sensitive column is in all releases.", hint="Name releases of this table.")
    finders = [find_people(release, people, keys) for release, keys in zip(releases, names, strict=True)]
    out = []
    with case.stage("Looking people up", len(shared)) as progress:
        for secret in shared:
            d, truth = secret.d, people.published(secret)
            possible: NDArray[np.bool_] | None = None
            scenarios: list[Scenario] = []
            occurring = np.bincount(truth[truth >= 0], minlength=d) > 0
            baseline, _ = _left(np.broadcast_to(occurring, (people.n, d)), truth, people)
            for number, (release, found) in enumerate(zip(releases, finders, strict=True), 1):
                here = _possible(release, secret, found, people.n)
                possible = here if possible is None else possible & here
                figures, frame = _left(possible, truth, people)
                bounds = {"alone": wilson(figures["alone"], people.n)}
                name, title = f"releases-{number}", f"{number} releases" if number > 1 else "this release alone"
                scenarios.append(Scenario(name, title, "person", figures, frame, True, bounds))
            out.append(
                AttackResult(
                    attack=attack.name,
                    target=(secret.name,),
                    adversary=attack.adversary,
                    success=attack.success,
                    baseline=baseline,
                    scenarios=tuple(scenarios),
                    titles={"alone": "one value left", "mean_left": "values left", "right": "right guess"},
                    measure="belief",
                    shares=("alone", "mean_belief", "right"),
                    facts={"values": d, "people": people.n, "releases": len(releases)},
                    notes=(
                        "a belief is 1 over the values that are left: how often each occurs is not used",
                        f"bounds are Wilson's, {LEVEL:.0%}, as if these people were a sample",
                    ),
                )
            )
            progress(1)
    return out


def _possible(
    release: Release, first: Statement, found: tuple[Finder, list[NDArray]], people: int
) -> NDArray[np.bool_]:
    """(people, values of the first release): what somebody who is in this release may have."""
    here, d = release.column(first.name), first.d
    place = np.array([first.domain.index.get(label, d) for label in here.domain.values], np.int64)
    cells, kind = release.cells([here.name])[here.name].distinct()
    told = here.possible(cells)
    assert told is not None
    bounds, values = told
    # one column more for values that the first release does not know, and for people whom nobody covers: all of them
    out = np.zeros((people, d + 1), bool)
    seen = np.zeros(people, bool)
    finder, codes = found
    for part in finder.candidates(codes, people):
        inside = np.zeros((len(part.bounds) - 1, d + 1), bool)
        left, entries = chosen(bounds, kind[part.order])
        inside[np.repeat(owners(part.bounds), np.diff(left)), place[values[entries]]] = True
        out[part.people] = inside[part.of]
        seen[part.people] = True
    out[~seen] = True
    return out[:, :-1]


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
