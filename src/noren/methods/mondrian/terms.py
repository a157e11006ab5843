"""Requirements on quasi-sensitive terms as the kernels of `mondrian` read them.

Records with the same terms share a profile: the labels they link to, and the beliefs in them. Records without terms
link to all labels and records that link to none hold nothing; both are marked, not written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.methods.suppress.beliefs import Linkage, linkages, postings_of
from noren.models.base import Model
from noren.ragged import distinct_of, numbered_sets, offsets_of

if TYPE_CHECKING:
    from noren.methods.mondrian.kernels.term_rules import TermRules


def term_rules(table: Records, requirements: Sequence[Model]) -> TermRules | None:
    """Return all rules of all linkages, or None if there are none."""
    from noren.methods.mondrian.kernels import term_rules as kernel

    asked = [found for found in linkages(table, requirements) if found.rules]
    if not asked:
        return None
    starts = offsets_of([len(found.knowledge.labels) for found in asked])
    profiles = np.empty((table.n, len(asked)), np.int32)
    labels, sizes, shares = [np.empty(0, np.int32)], [np.empty(0, np.int64)], [np.empty(0)]
    beliefs = [np.empty(0)]
    paired = any(found.knowledge.pairs is not None for found in asked)
    passed = 0
    for j, found in enumerate(asked):
        of, size, label, belief = _profiles(found, paired)
        profiles[:, j] = np.where(of >= 0, of + passed, of)
        passed += len(size)
        weight = found.knowledge.label_weights[label]
        labels.append((label + starts[j]).astype(np.int32))
        sizes.append(size)
        beliefs.append(belief)
        shares.append(1 / np.add.reduceat(weight, offsets_of(size)[:-1]) if len(size) else np.empty(0))
    weights = np.concatenate([np.empty(0), *(found.knowledge.label_weights for found in asked)])
    alpha = np.concatenate([np.empty(0), *(found.alpha for found in asked)])
    totals = [(w.sum(), a.sum(), a @ a) for w, a in ((f.knowledge.label_weights, f.alpha) for f in asked)]
    kinds = {"l2": kernel.NEAR_L2, "emd": kernel.NEAR_EMD}
    rules = [
        (j, kernel.DIVERSE, rule.c, rule.l, unlinked == "prior")
        if rule.kind == "cl"
        else (j, kinds[rule.metric], rule.t, 1, unlinked == "prior")
        for j, found in enumerate(asked)
        for rule, unlinked in found.rules
    ]
    of_rule, kind, first, rank, prior = zip(*rules, strict=True)
    return kernel.TermRules(
        profiles,
        offsets_of(np.concatenate(sizes)),
        np.concatenate(labels),
        np.concatenate(shares),
        np.concatenate(beliefs),
        starts,
        weights,
        alpha,
        np.array(totals, np.float64),
        np.array(of_rule, np.int64),
        np.array(kind, np.int64),
        np.array(first, np.float64),
        np.array(rank, np.int64),
        np.array(prior, np.bool_),
        np.empty(len(profiles), np.int64),
        np.zeros(len(weights)),
        np.empty(len(weights), np.int64),
    )


def _profiles(
    found: Linkage, paired: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the profile of every record (or a mark), the number of labels of each profile, the labels, and with pair
    weights the beliefs."""
    from noren.methods.mondrian.kernels.term_rules import EVERYTHING, NOTHING
    from noren.methods.suppress.kernels.linkage import link_records

    _, first, of = distinct_of(numbered_sets(found.cells.offsets, found.cells.data))
    cells = found.cells.take(first)
    empty = cells.sizes == 0
    some = cells.take(np.flatnonzero(~empty))
    at, label, belief = link_records(some.offsets, some.data, postings_of(found.knowledge))
    size, belief = np.diff(at), belief if paired else np.empty(0)
    number = np.full(len(first), EVERYTHING, np.int64)
    number[~empty] = np.where(size > 0, np.cumsum(size > 0) - 1, NOTHING)
    return number[of], size[size > 0], label, belief
