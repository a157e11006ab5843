"""Which published row may be a person's, by everything but the secrets.

Where all columns besides the sets are published exactly, a person is recognised by a row that is alone with them on
both sides. Beside general values the person's row is one of those whose cells cover the person's own: one of them
stands for it, and where there is a single one that covers nobody else, the person is recognised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.audit.people import People, exact_codes, exact_statements, unique_pairs
from noren.audit.sample import Sample, sample_of
from noren.audit.told import finder_for
from noren.ragged import owners
from noren.release.published import Published
from noren.statements import Statement


@dataclass(frozen=True)
class Place:
    """Where the people of the original stand in a release."""

    who: NDArray[np.int64]
    """The people who fit some row, by their number in the original."""
    row: NDArray[np.int64]
    """A row that each of them fits; -1 where all is exact and the row is not recognised."""
    recognised: NDArray[np.bool_]
    """Whether it is the person's own."""
    lost: int
    """People who fit no row: they were left out."""
    by: str
    """The columns by which rows are recognised, in words."""


def key_statements(release: Published) -> list[Statement]:
    """The columns of listed values whose cells can be compared with what a person has."""
    return [one for one in release.statements if one.is_key and not one.column.is_open]


def place_people(release: Published, people: People, some: Sample | None = None) -> Place:
    """Where everybody stands, or all who are measured; whether a row is a person's own is seen among all people."""
    keys = key_statements(release)
    measured = sample_of(people.n, 0) if some is None else some
    row = np.full(people.n, -1, np.int64)
    if all(one.is_exact for one in keys):
        exact = exact_statements(release)
        mine, found = unique_pairs(people.exact_codes(exact), exact_codes(release))
        row[mine] = found
        row = measured[row]
        return Place(measured.lines, row, row >= 0, 0, "exact columns")
    finder, asked = finder_for(release, [one.name for one in keys], {one.name: people.published(one) for one in keys})
    chance = np.random.default_rng(0).random(people.n)  # simulation only: nothing of it is published
    single = np.zeros(people.n, bool)
    for part in finder.candidates([measured[codes] for codes in asked], len(measured)):
        sizes, who = np.diff(part.bounds), measured.lines[part.people]
        at = part.bounds[part.of] + np.floor(chance[who] * sizes[part.of]).astype(np.int64)
        row[who], single[who] = part.order[at], sizes[part.of] == 1
    alone = np.unique(row[single])
    fitting = np.zeros(release.rows, np.int64)
    if len(alone):  # a row that is somebody's only one may be others' too
        names, codes = [one.name for one in keys], {one.name: people.published(one) for one in keys}
        finder, asked = finder_for(release, names, codes, alone)
        for part in finder.candidates(asked, people.n):
            np.add.at(
                fitting, alone[part.order], np.bincount(part.of, minlength=len(part.bounds) - 1)[owners(part.bounds)]
            )
    here = row[measured.lines]
    who = measured.lines[here >= 0]
    own = single[who] & (fitting[row[who]] == 1)
    return Place(who, row[who], own, len(measured) - len(who), "exact columns and general values")
