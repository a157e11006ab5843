"""Decoys as a candidate beside general values: the same random count queries, answered by unbiased linear estimates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from noren.cells import Cells, SetCells, ValueCells
from noren.designs.any import draw_columns
from noren.designs.decoys import DecoyDesign
from noren.errors import ModelDoesNotApply, QueryError
from noren.methods.base import CodedTable
from noren.methods.decoys import Decoys
from noren.methods.scoring import DIMENSIONS, QUERIES
from noren.metrics.general import general_table
from noren.metrics.queries import Workload, random_workload, true_counts, workload_error
from noren.models import KAnonymity
from noren.models.base import Overall, Verdict
from noren.pipeline.draft import published_entry
from noren.pipeline.verify import check_store
from noren.policy.policy import Policy
from noren.policy.resolve import ResolvedColumn
from noren.release.store import MemoryStore
from noren.secret import Keystream

CELLS_AT_ONCE = 1 << 24


class DecoyTrial:
    """Decoys drawn for a coded table, judged and measured like a release."""

    def __init__(self, policy: Policy, columns: Mapping[str, ResolvedColumn], table: CodedTable) -> None:
        assert isinstance(policy.method, Decoys)
        self.policy = policy
        self.table = table
        self.designs: dict[str, DecoyDesign] = {}
        for name, design in policy.method.decide(table.columns, policy.require).designs.items():
            if not isinstance(design, DecoyDesign) or design.p_gap == 0:
                raise QueryError("decoys are compared only where they are drawn uniformly and say something.")
            self.designs[name] = design
        self.sets = draw_columns(self.designs, {name: table.codes[name] for name in self.designs}, Keystream())
        self.entries = [published_entry(columns[name], self.designs.get(name)) for name in table.columns]

    def verdicts(self) -> list[Verdict]:
        """The policy's requirements on the drawn sets."""
        overall = {
            name: Overall(facts.counts / facts.counts.sum(), "the original")
            for name, facts in self.table.columns.items()
        }
        return check_store(self._store(), self.entries, self.policy.require, overall)

    def smallest_class(self) -> float:
        """Records that share all quasi-identifiers, which decoys leave as they are; 0 where that has no meaning."""
        try:
            (verdict,) = check_store(self._store(), self.entries, [KAnonymity(k=2)], {})
        except ModelDoesNotApply:
            return 0.0
        return verdict.achieved

    def worst_share(self) -> float:
        """What a set of equally likely values leaves to guess."""
        return max(1 / design.eta for design in self.designs.values())

    def query_loss(self) -> float:
        """Mean relative error of the workload that general values are measured with."""
        facts = self.table.columns
        roles = {name: fact.role for name, fact in facts.items()}
        view = general_table(roles, {name: fact.domain for name, fact in facts.items()}, self.table.codes, {})
        trees = {name: fact.hierarchy for name, fact in facts.items() if fact.hierarchy is not None}
        secret = next(iter(self.table.sensitive), None)
        errors = []
        for number in DIMENSIONS:
            if number <= len(view.measured):
                workload = random_workload(view, trees, secret, number, QUERIES)
                actual = true_counts(view, workload)
                if (actual > 0).any():
                    errors.append(workload_error(actual, self._estimated(workload)).mean)
        return float(np.mean(errors)) if errors else 0.0

    def _store(self) -> MemoryStore:
        cells: dict[str, Cells] = {}
        for name, facts in self.table.columns.items():
            cells[name] = (
                self.sets[name] if name in self.sets else ValueCells(len(facts.domain), self.table.codes[name])
            )
        return MemoryStore(cells)

    def _estimated(self, workload: Workload) -> NDArray[np.float64]:
        """Counts by inverting the inclusion probabilities of every set that a query has a condition on."""
        out = np.empty(len(workload))
        inside = {name: _inclusion(self.sets[name], design) for name, design in self.designs.items()}
        step = max(1, CELLS_AT_ONCE // self.table.n)
        for start in range(0, len(workload), step):
            part = slice(start, start + step)
            score = np.ones((len(out[part]), self.table.n), np.float32)
            for name, chosen in workload.chosen.items():
                wanted = chosen[part].astype(np.float32)
                if name in inside:
                    design = self.designs[name]
                    found = wanted @ inside[name] - wanted.sum(axis=1, keepdims=True) * design.p_other
                    found /= design.p_gap
                else:
                    found = wanted[:, self.table.codes[name]]
                score *= np.where(workload.asked[name][part, None], found, 1)
            out[part] = score.sum(axis=1, dtype=np.float64)
        return out


def _inclusion(sets: SetCells, design: DecoyDesign) -> NDArray[np.float32]:
    """(values, records): 1 where a record's set holds a value."""
    out = np.zeros((design.d, len(sets)), np.float32)
    codes = sets.codes(design.eta)
    for place in range(design.eta):
        out[codes[:, place], np.arange(len(sets))] = 1
    return out
