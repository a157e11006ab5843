"""Columns that tell each other: what another published column says about a protected one, before anything is published.

For every protected column A and every other published column B the adversary knows how A goes together with B among the
*other* people, sees the person's published cell of B and the person's own cell of A, and concludes by Bayes. Counted
are the people whose true value is then believed with certainty, beyond those whom their own cell gives away already.

In a small table, or over many values, two columns seem to tell each other by chance: what only a few others show is
then wrong about as often as the person's set leaves room for. Certainty therefore counts only as far as it proves
right: among people who are as well supported, for nearly all of them. Large tables are sampled; nothing is skipped
because a domain is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.cells import CellBatch, Cells, Statement, concat, take
from noren.cells.batch import PERSON
from noren.errors import PolicyError, Problem
from noren.pipeline.draft import Draft
from noren.policy.policy import Policy

KNOWN = 200_000
"""Records from which the adversary learns how columns go together."""
ASKED = 20_000
"""Records whose secrets are asked for."""
CERTAIN = 0.99
SUPPORT = 2
"""Other people who must show the same before somebody is certain."""
RIGHT = 0.95
"""How often certainty must prove right, among people with about as many others who show the same, to be believed."""
DEVIATIONS = 2.0
"""Standard deviations by which a share must exceed the limit: the people asked are a sample, and may be few."""


@dataclass(frozen=True)
class Told:
    """What one published column tells about another."""

    protected: str
    by: str
    share: float
    """People whose true value is believed with certainty."""
    alone: float
    """The same from the person's own cell alone."""

    asked: int
    """People whose secrets were asked for."""

    @property
    def more(self) -> float:
        return self.share - self.alone

    @property
    def surely(self) -> float:
        """The least that the other column tells, as far as so few people show it."""
        more = min(1.0, max(0.0, self.more))
        return more - DEVIATIONS * float(np.sqrt(more * (1 - more) / max(1, self.asked)))


def told(draft: Draft) -> list[Told]:
    """Every ordered pair of a protected and another published column, the most telling first."""
    hidden = [s for s in draft.statements if s.role.needs_requirement and s.hides and s.rows_per_record == 1]
    if not hidden or len(draft.statements) < 2:
        return []
    truth, cells = _sampled(draft)
    n = len(next(iter(truth.values()))) if truth else 0
    if n < 2 * SUPPORT:
        return []
    asked = np.arange(min(n, ASKED))
    out = []
    for own in hidden:
        if own.name not in truth:
            continue
        rows = _possible(own, cells[own.name], asked)
        prior = np.bincount(truth[own.name], minlength=own.d).astype(np.float64)
        alone = _certain(_scaled(rows, prior), truth[own.name][asked])
        for other in draft.statements:
            if other.name == own.name or other.name not in truth or other.d == 0:
                continue
            share = _told(own, other, rows, truth, cells[other.name], asked)
            out.append(Told(own.name, other.name, share, alone, len(asked)))
    return sorted(out, key=lambda one: -one.more)


def demand_independence(draft: Draft, policy: Policy) -> list[str]:
    """Refuse a draft in which columns tell each other too much; else what a holder should know about it."""
    most = policy.dependence.most
    if most >= 1:
        return []
    found = [one for one in told(draft) if one.surely > most]
    problems = [
        Problem(
            f"attributes.{one.by}",
            f"it tells {one.protected!r}: {one.share:.0%} of the people are certain from both, {one.alone:.0%} from "
            f"{one.protected!r} alone.",
            f"Leave {one.by!r} out (role 'identifier'), protect it together with {one.protected!r}, or accept it with "
            f"[dependence] most = {min(1.0, one.more + 0.01):.2f}.",
        )
        for one in found
    ]
    if problems:
        raise PolicyError(problems, source=policy.source)
    return []


def _sampled(draft: Draft) -> tuple[dict[str, NDArray[np.int64]], dict[str, Cells]]:
    """True codes of listed columns and published cells of some records, drawn from all of the table; one a person, for
    another row of the same person is nothing that the adversary knows from others."""
    table = draft.table
    share = min(1.0, KNOWN / max(1, table.n))
    rng = np.random.default_rng()  # which records are looked at is no release
    codes: dict[str, list[NDArray[np.int64]]] = {}
    parts: list[CellBatch] = []
    whose: list[NDArray[np.int64]] = []
    listed = [s.name for s in draft.statements if not s.column.is_open and s.name not in _term_columns(draft)]
    for batch in table.engine.encoded(table.source, table.reading(listed, draft.key)):
        kept = draft.keep[batch.start : batch.start + batch.records]
        rows = np.flatnonzero(rng.random(int(kept.sum())) < share)
        if not len(rows):
            continue
        published = draft.apply_to(batch, listed)
        parts.append(take({name: cells for name, cells in published.items() if name != PERSON}, rows))
        if table.people is not None:
            whose.append(table.people[batch.start : batch.start + batch.records][kept][rows])
        for name in listed:
            codes.setdefault(name, []).append(batch.codes[name][np.flatnonzero(kept)[rows]].astype(np.int64))
    draft.forget()
    if not parts:
        return {}, {}
    order = rng.permutation(sum(len(part) for part in codes[listed[0]]))
    if whose:
        order = order[np.unique(np.concatenate(whose)[order], return_index=True)[1]]
        order = rng.permutation(order)
    truth = {}
    for name in listed:
        place = draft.published_codes(name, table.columns[name].domain.values)
        truth[name] = place[np.concatenate(codes[name])][order]
    good = {name: found for name, found in truth.items() if (found >= 0).all()}
    return good, {name: cells.take(order) for name, cells in concat(parts).items()}


def _term_columns(draft: Draft) -> set[str]:
    return {s.name for s in draft.statements if s.side is not None and not s.hides}


def _possible(statement: Statement, cells: Any, asked: NDArray[np.int64]) -> Any:
    """(records, values): the likelihood of every record's cell under every value it leaves possible."""
    from scipy.sparse import csr_array

    distinct, number = cells.distinct()
    found = statement.likelihood(distinct)
    assert found is not None
    if found.floor > 0:
        dense = found.dense(statement.d) if len(found) * statement.d <= 1 << 24 else None
        if dense is not None:
            return csr_array(dense)[number[asked]]
    rows = csr_array((found.weight, found.value, found.bounds), shape=(len(found), statement.d))
    return rows[number[asked]]


def _scaled(rows: Any, prior: NDArray[np.float64]) -> Any:
    from scipy.sparse import csr_array

    return csr_array(rows.multiply(prior[None, :]))


def _certain(belief: Any, truth: NDArray[np.int64], support: Any = None) -> float:
    """The share of records whose true value is believed with certainty; with `support` (records, values), only as far
    as certainty with so many others behind it proves right."""
    if not len(truth):
        return 0.0
    total = np.asarray(belief.sum(axis=1)).ravel()
    guess, most = _best(belief)
    sure = (total > 0) & (most >= CERTAIN * np.maximum(total, 1e-300))
    right = sure & (guess == truth)
    if support is None:
        return float(right.mean())
    behind = np.asarray(support[np.arange(len(truth)), guess]).ravel()
    sure &= behind >= SUPPORT
    strength = np.floor(np.log2(np.maximum(behind, 1.0))).astype(np.int64)
    found = np.bincount(strength[sure], minlength=1)
    good = np.bincount(strength[sure & right], minlength=len(found))
    return float(good[good >= RIGHT * found].sum() / len(truth))


def _best(belief: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The likeliest value of every record, and its weight."""
    lengths = np.diff(belief.indptr)
    there = lengths > 0
    most = np.zeros(len(lengths))
    if there.any():
        most[there] = np.maximum.reduceat(belief.data, belief.indptr[:-1][there])
    row = np.repeat(np.arange(len(lengths)), lengths)
    best = belief.data == most[row]
    guess = np.zeros(len(lengths), np.int64)
    guess[row[best]] = belief.indices[best]
    return guess, most


def _told(
    own: Statement,
    other: Statement,
    rows: Any,
    truth: dict[str, NDArray[np.int64]],
    cells: Cells,
    asked: NDArray[np.int64],
) -> float:
    """The share of people who are certain from their own cell and from the other column's."""
    from scipy.sparse import csr_array

    a, b = truth[own.name], truth[other.name]
    ones = np.ones(len(a))
    joint = csr_array((ones, (b, a)), shape=(other.d, own.d))
    joint.sum_duplicates()
    seen = _possible(other, cells, asked)
    expected = csr_array(seen @ joint)
    mine = np.asarray(seen[np.arange(len(asked)), b[asked]]).ravel()
    less = csr_array((mine, (np.arange(len(asked)), a[asked])), shape=expected.shape)
    others = csr_array(expected - less)
    largest = np.asarray(seen.max(axis=1).todense()).ravel()
    belief = csr_array(rows.multiply(others))
    belief.data[belief.data < 1e-12 * max(1e-300, float(belief.data.max(initial=0.0)))] = 0.0
    support = csr_array(others.multiply(1 / np.maximum(largest, 1e-300)[:, None]))
    return _certain(belief, a[asked], support)
