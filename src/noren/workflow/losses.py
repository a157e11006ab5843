"""Losses by generalisation and suppressed terms, in all metrics that apply to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from noren.engines import Plan, Records
from noren.errors import QueryError
from noren.metrics.general import GeneralTable
from noren.metrics.losses import GENERAL_METRICS
from noren.metrics.term_losses import BeliefChange, belief_change, joint_terms, term_loss
from noren.models.base import Model, Overall
from noren.models.term_check import TermModel
from noren.ragged import row_numbers
from noren.schema.knowledge import Knowledge
from noren.statements import TermCells


def losses_of(view: GeneralTable) -> dict[str, float]:
    """Return every metric for which the table has columns, and its classes."""
    out: dict[str, float] = {}
    for name, metric in GENERAL_METRICS.items():
        with suppress(QueryError):
            out[name] = metric(view)
    out["classes"] = float(len(view.sizes))
    out["smallest_class"] = float(view.sizes.min(initial=view.n))
    return out


def term_losses(
    records: Records,
    plan: Plan,
    priors: Mapping[str, Overall],
    view: GeneralTable,
    requirements: Sequence[Model] = (),
) -> dict[str, float]:
    """Return the loss of suppressed terms, and the remaining rise of beliefs; means over the knowledge tables.

    The figures are taken from the sets before and after, not from what a search says of itself.
    """
    terms = records.terms
    if not terms:
        return {}
    group = published_groups(view)
    costs, shares, beliefs = [], [], []
    for names in records.together():
        known = len(terms[names[0]].knowledge.terms)
        had = joint_terms([terms[name].cells for name in names], known)
        left = joint_terms([plan.omitted.get(name, terms[name].cells) for name in names], known)
        loss = term_loss(had, left, group)
        costs.append((loss.mean_over_groups, loss.mean_over_records))
        shares.append((loss.removed, loss.entries))
        beliefs.append(_measure_beliefs(names, records, left, group, priors, requirements))
    removed, entries = np.sum(shares, axis=0)
    by_group, by_record = np.mean(costs, axis=0)
    return {
        "term_cost_loss": float(by_group),
        "term_cost_of_records_loss": float(by_record),
        "term_share_loss": float(removed / entries) if entries else 0.0,
        **rises(beliefs),
    }


def beliefs_before(
    records: Records,
    priors: Mapping[str, Overall],
    view: GeneralTable,
    requirements: Sequence[Model] = (),
) -> dict[str, float]:
    """Return how much beliefs would rise if the table were published unchanged."""
    terms = records.terms
    if not terms:
        return {}
    group = original_groups(view)
    found = []
    for names in records.together():
        had = joint_terms([terms[name].cells for name in names], len(terms[names[0]].knowledge.terms))
        found.append(_measure_beliefs(names, records, had, group, priors, requirements))
    return rises(found)


def rises(found: Sequence[BeliefChange]) -> dict[str, float]:
    """Return the belief change (equation 1): mean over records, mean over groups, maximum; the worst of all knowledge
    tables."""
    return {
        "belief_rise_mean_loss": max(change.mean_over_records for change in found),
        "belief_rise_of_groups_loss": max(change.mean_over_groups for change in found),
        "belief_rise_max_loss": max(change.highest for change in found),
    }


def published_groups(view: GeneralTable) -> NDArray[np.int64]:
    """Return the published group of every record; -1 for records that are not published."""
    group = np.full(view.n, -1, np.int64)
    group[view.keep] = view.classes
    return group


def original_groups(view: GeneralTable) -> NDArray[np.int64]:
    """Return groups of records that share all quasi-identifiers in the original."""
    columns = view.quasi_columns()
    return row_numbers([column.truth for column in columns], [len(column.domain) for column in columns], view.n)


def _measure_beliefs(
    names: Sequence[str],
    records: Records,
    cells: TermCells,
    group: NDArray[np.int64],
    priors: Mapping[str, Overall],
    requirements: Sequence[Model],
) -> BeliefChange:
    knowledge = records.terms[names[0]].knowledge
    asked = [m for m in requirements if isinstance(m, TermModel) and set(m.on) & set(names)]
    unlinked = asked[0].unlinked if asked else "ignore"
    return belief_change(cells, group, knowledge, _alpha(names, knowledge, priors), unlinked)


def _alpha(names: Sequence[str], knowledge: Knowledge, priors: Mapping[str, Overall]) -> NDArray[np.float64]:
    """Return the prior beliefs: those of the knowledge table, otherwise those of the original."""
    found = priors[names[0]].shares if knowledge.priors is None else knowledge.priors
    return np.asarray(found, np.float64)
