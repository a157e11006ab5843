"""How often an adversary guesses a secret right from everything that a draft would publish.

The adversary knows the quasi-identifiers, and so a person's class: the rows that look alike in them; where they are not
general, the row itself, as decoys suppose. A secret that is
published as it is: the commonest value of the class is guessed. One that its cells hide (sets, general values, groups):
for every row of the class, what the design says of its cell is weighed with how common the values are, among the others
of the class or given each other column, learned from the *other* people; then the rows are taken together, since
nobody knows which of them is the person's. Of all secrets the one that is guessed best counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.cells import Statement
from noren.metrics.general import GeneralTable
from noren.pipeline.dependence import _sampled
from noren.pipeline.draft import Draft
from noren.schema.roles import Role

ASKED = 5_000
"""Records whose secrets are guessed."""
SHRINK = 25.0
"""People of the overall distribution that are mixed into that of a class, as `audit` does."""
MOST_CELLS = 1 << 24
"""Beliefs that are held at once; fewer records are asked where a domain is large."""
QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)


def right_guesses(draft: Draft, view: GeneralTable) -> float | None:
    """The share of people whose secret is guessed right; None where no secret can be guessed from single cells."""
    secrets = [s for s in draft.statements if s.role.needs_requirement and s.rows_per_record == 1]
    found = [share for s in secrets if not s.hides and (share := _by_class(view, s.name)) is not None]
    hidden = [s.name for s in secrets if s.hides]
    if hidden:
        truth, cells = _sampled(draft)
        found += [_by_row(draft, name, truth, cells) for name in hidden if name in truth]
    return max(found, default=None)


def _by_class(view: GeneralTable, name: str) -> float | None:
    """A secret that is published as it is: the commonest value of every class, over all records."""
    if name not in view.columns:
        return None
    keys = [column for column in view.columns.values() if column.role in QUASI and column.name != name]
    of = _classes([column.cells[view.keep] for column in keys], int(view.keep.sum()))
    value = view.columns[name].truth[view.keep].astype(np.int64)
    pairs, count = np.unique(of * np.int64(len(view.columns[name].domain)) + value, return_counts=True)
    most = np.zeros(int(of.max(initial=0)) + 1, np.int64)
    np.maximum.at(most, pairs // len(view.columns[name].domain), count)
    return float(most.sum() / max(1, len(of)))


def _by_row(draft: Draft, name: str, truth: dict[str, NDArray[np.int64]], cells: dict[str, Any]) -> float:
    """A hidden secret: the better of two ways to weigh what the other columns say."""
    own = draft.by_name[name]
    mine = truth[name]
    prior = np.bincount(mine, minlength=own.d).astype(np.float64)
    others = [s for s in draft.statements if s.name != name and s.name in truth and s.d > 0]
    alike = [s for s in others if s.is_key and s.role in QUASI]
    of = _classes([cells[s.name].distinct()[1] for s in alike], len(mine))
    general = any(s.nodes is not None for s in alike)
    told = of if general else np.arange(len(mine))
    asked = np.argsort(told, kind="stable")[: max(1, min(ASKED, MOST_CELLS // own.d))]  # classes are in no order
    likely = _possible(own, cells[name], asked).toarray()
    beliefs = [_class_prior(of, mine, asked, prior)] if alike else []
    one_by_one = np.log(np.maximum(prior, 1e-300))[None, :].repeat(len(asked), axis=0)
    for other in others:
        one_by_one += _log_told(other, cells[other.name], truth[other.name], mine, asked, prior)
    one_by_one -= one_by_one.max(axis=1, keepdims=True)
    beliefs.append(np.exp(one_by_one))
    return max(_right(likely * belief, mine[asked], told[asked]) for belief in beliefs)


def _class_prior(
    of: NDArray[np.int64], mine: NDArray[np.int64], asked: NDArray[np.int64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How the secret is distributed among the others of every record's class, shrunk towards all people."""
    from scipy.sparse import csr_array

    counts = csr_array((np.ones(len(of)), (of, mine)), shape=(int(of.max(initial=0)) + 1, len(prior)))
    here = np.asarray(counts[of[asked]].toarray())
    here[np.arange(len(asked)), mine[asked]] -= 1
    return np.asarray(here + SHRINK * prior / prior.sum())


def _log_told(
    other: Any,
    cells: Any,
    theirs: NDArray[np.int64],
    mine: NDArray[np.int64],
    asked: NDArray[np.int64],
    prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The logarithm of how much likelier each secret value is, given a record's cell of another column."""
    from scipy.sparse import csr_array

    joint = csr_array((np.ones(len(mine)), (theirs, mine)), shape=(other.d, len(prior)))
    seen = _possible(other, cells, asked)
    expected = np.asarray((seen @ joint).toarray())
    weight = np.asarray(seen[np.arange(len(asked)), theirs[asked]]).ravel()
    expected[np.arange(len(asked)), mine[asked]] -= weight
    total = np.maximum(weight, expected.sum(axis=1) / max(1, len(mine)))[:, None]
    share = prior / prior.sum()
    expected = np.maximum(expected, 0) + SHRINK * total * share
    return np.log(np.maximum(expected, 1e-300)) - np.log(np.maximum(share, 1e-300))


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


def _classes(keys: list[NDArray], n: int) -> NDArray[np.int64]:
    """The number of every record's class: those that agree in all keys. Classes are numbered at random."""
    of = np.zeros(n, np.int64)
    for key in keys:
        values, code = np.unique(key, return_inverse=True)
        of = np.unique(of * np.int64(len(values)) + code.reshape(-1), return_inverse=True)[1].reshape(-1)
    return np.random.default_rng().permutation(int(of.max(initial=0)) + 1)[of]  # whom we ask is no release


def _right(belief: NDArray[np.float64], truth: NDArray[np.int64], of: NDArray[np.int64]) -> float:
    """How often the likeliest value of a class is a member's truth; of equally likely ones any is picked."""
    first = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
    total = belief.sum(axis=1, keepdims=True)
    each = np.divide(belief, total, out=np.full_like(belief, 1 / belief.shape[1]), where=total > 0)
    whole = np.add.reduceat(each, first, axis=0)
    tied = whole >= whole.max(axis=1, keepdims=True) * (1 - 1e-9)
    place = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(of))))
    return float((tied[place, truth] / tied.sum(axis=1)[place]).mean())
