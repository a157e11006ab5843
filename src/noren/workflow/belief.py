"""How often an adversary guesses a secret right from everything that a draft would publish.

The adversary is that of the requirement `belief` and of `audit bayes`: all published columns of a record are read, and
how they go together is learned from the cells of others (`noren.estimates.belief`). A secret published as it is, and
any secret beside general quasi-identifiers, lies in a class of rows that look alike: which of them is the person's
nobody knows. Of all secrets the one that is guessed best counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.estimates import believed
from noren.metrics.general import GeneralTable
from noren.schema.roles import Role
from noren.workflow.dependence import _sampled
from noren.workflow.draft import Draft

QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)


def right_guesses(draft: Draft, view: GeneralTable) -> float | None:
    """The share of people whose secret is guessed right; None where no secret can be guessed from single cells."""
    secrets = [s for s in draft.statements if s.role.needs_requirement and s.rows_per_record == 1]
    found = [share for s in secrets if not s.hides and (share := _by_class(view, s.name)) is not None]
    hidden = [s.name for s in secrets if s.hides]
    if hidden:
        truth, cells = _sampled(draft)
        readable = [s for s in draft.statements if s.name in cells]
        for name in hidden:
            told = believed(name, readable, cells, truth=truth[name]) if name in truth else None
            if told is not None and told.right is not None:
                found.append(float(told.right.mean()))
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


def _classes(keys: list[NDArray], n: int) -> NDArray[np.int64]:
    """The number of every record's class: those that agree in all keys."""
    of = np.zeros(n, np.int64)
    for key in keys:
        values, code = np.unique(key, return_inverse=True)
        of = np.unique(of * np.int64(len(values)) + code.reshape(-1), return_inverse=True)[1].reshape(-1)
    return of
