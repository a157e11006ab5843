"""The classes of `mondrian`: cut, refine, cut again, drop; and once more with cuts that leave records behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines import RandomOrder, Records
from noren.methods import kernels as kinds
from noren.methods.mondrian.kernels import Points, Required, cut, drop, move_records
from noren.methods.mondrian.kernels.exchange import Reserve, Secrets, exchange
from noren.methods.mondrian.space import losses_of, space_of
from noren.methods.mondrian.terms import term_rules
from noren.methods.requirements import Compiled, about_values, compiled
from noren.models.base import Model
from noren.ragged import in_order, offsets_of, owners, row_numbers, runs

if TYPE_CHECKING:
    from noren.methods.mondrian import Mondrian

USED = 0.1
PER_SECRET = 20
"""A part of many records may use a tenth of what requirements permit, one of 20 records for every secret all of it.
Chosen on census and generated tables."""


class Workbench:
    """The records in the order of the kernels; every class is contiguous.

    Records that look alike are distinguished by a random order alone, so that their classes disclose nothing of the
    input.
    """

    def __init__(
        self, table: Records, requirements: Sequence[Model], order: RandomOrder, weights: Mapping[str, float]
    ) -> None:
        asked = compiled(table, about_values(requirements))
        least, guarded = smallest_class(asked)
        self.required = Required(asked.rules, term_rules(table, requirements), least, guarded)
        self.space = space_of(table, weights)
        secrets = np.zeros((table.n, max(1, len(asked.sensitive))), np.int32)
        for j, name in enumerate(asked.sensitive):
            secrets[:, j] = table.codes[name]
        who = np.asarray(order(table.n), np.int64)
        self.records = Points(self.space.rows[who], secrets[who], who)

    def divide(self, begins: NDArray[np.int64], relaxed: bool) -> NDArray[np.int64]:
        """Cut the parts that begin there; set the marks of `cut`."""
        return np.asarray(cut(self.records, begins, self.space.costs, self.required, relaxed))

    def refine(self, begins: NDArray[np.int64], of: NDArray[np.int64], awake: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Run one round over the active classes. Changes `of`; returns which classes are worth another round."""
        rows, costs, required = self.records.rows, self.space.costs, self._required_by_row()
        orders, losses = _orders(rows, costs.widths), losses_of(rows, begins, costs)
        return np.asarray(move_records(self.records, orders, begins, of, losses, awake, costs, required))

    def drop(self, begins: NDArray[np.int64], of: NDArray[np.int64], budget: int) -> None:
        """Drop single records, whose class becomes -1."""
        costs, losses = self.space.costs, losses_of(self.records.rows, begins, self.space.costs)
        drop(self.records, begins, of, losses, costs, self._required_by_row(), self.space.total, budget)

    def arrange(self, of: NDArray[np.int64]) -> NDArray[np.int64]:
        """Make the records of every class contiguous again, classes in ascending order; return the permutation."""
        together = np.argsort(of, kind="stable")
        self.records = Points(*(part[together] for part in self.records))
        return together

    def _required_by_row(self) -> Required:
        terms = self.required.terms
        if terms is not None:
            terms = terms._replace(profiles=terms.profiles[self.records.who])
        return self.required._replace(terms=terms)

    def loss(self, begins: NDArray[np.int64]) -> float:
        """Return the total loss of classes that begin there."""
        return float(losses_of(self.records.rows, begins, self.space.costs).loss @ np.diff(begins))


class Exchange(Workbench):
    """A workbench whose cuts reduce a side until it meets the requirements. The order determines which of equal records
    stay behind."""

    def __init__(
        self, table: Records, requirements: Sequence[Model], order: RandomOrder, weights: Mapping[str, float]
    ) -> None:
        super().__init__(table, requirements, order, weights)
        codes = self.records.secrets
        of = row_numbers(list(codes.T), (codes.max(axis=0, initial=0) + 1).tolist(), table.n)
        example = np.unique(of, return_index=True)[1]
        self.secrets = Secrets(of, codes[example].astype(np.int64), np.bincount(of) / max(1, table.n))
        self.reserve = Reserve(USED, float(PER_SECRET * len(example)))

    def divide(self, begins: NDArray[np.int64], relaxed: bool) -> NDArray[np.int64]:
        """Cut the parts that begin there: the first time with a reserve, then and later without."""
        marks = exchange(self.records, self.secrets, begins, self.space.costs, self.required, self.reserve)
        if self.reserve.least < 1:
            self.reserve = Reserve(1.0, 1.0)
            return self.divide(np.concatenate([[0], np.flatnonzero(marks)]), relaxed)
        return np.asarray(marks)

    def arrange(self, of: NDArray[np.int64]) -> NDArray[np.int64]:
        together = super().arrange(of)
        self.secrets = self.secrets._replace(of=self.secrets.of[together])
        return together


def classes_of(
    table: Records, requirements: Sequence[Model], order: RandomOrder, method: Mondrian
) -> tuple[NDArray[np.int64], int]:
    """Return the class of every record (-1: dropped) and their number. All records together must meet the requirements.

    Where requirements compare classes with the whole table, cuts are also tried that leave records behind, and the
    classes that lose less are taken.
    """
    bench = Workbench(table, requirements, order, method.weights)
    begins = divide_table(bench, table.n, method)
    if method.exchange and any(model.relative for model in requirements) and bench.required.terms is None:
        other = Exchange(table, requirements, order, method.weights)
        found = divide_table(other, table.n, method)
        if other.loss(found) < bench.loss(begins):
            bench, begins = other, found
    of, count = owners(begins), len(begins) - 1
    budget = int(method.suppression * table.n + 1e-9)
    if budget:
        bench.drop(begins, of, budget)
    classes = np.empty(table.n, np.int64)
    classes[bench.records.who] = of
    return classes, count


def cut_inside(table: Records, of: NDArray[np.int64], requirements: Sequence[Model]) -> NDArray[np.int64]:
    """Cut existing classes further, each separately, without separating equal values: return the part of every record,
    numbered class by class.
    """
    bench = Workbench(table, requirements, lambda n: in_order(of), {})
    ends = np.concatenate([[0], np.flatnonzero(bench.divide(runs(of[bench.records.who]), False))])
    parts = np.empty(table.n, np.int64)
    parts[bench.records.who] = owners(ends)
    return parts


def divide_table(bench: Workbench, n: int, method: Mondrian) -> NDArray[np.int64]:
    """Cut, then move records and cut again for some rounds; return the offsets of the classes."""

    def divide(begins: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate([[0], np.flatnonzero(bench.divide(begins, not method.strict))])

    begins = divide(np.array([0, n]))
    awake = np.ones(n, bool)
    for _ in range(method.refinement):
        of, count = owners(begins), len(begins) - 1
        touched = bench.refine(begins, of, awake[begins[:-1]])
        if not touched.any():
            break
        awake = touched[of[bench.arrange(of)]]
        sizes = np.bincount(of, minlength=count)
        begins = divide(offsets_of(sizes[sizes > 0]))
    return begins


def smallest_class(asked: Compiled) -> tuple[int, bool]:
    """Return the smallest class that any requirement permits, and whether one requires more than a size."""
    sizes = [1.0]
    for kind, _, first, second in asked:
        if kind == kinds.K_ANONYMITY:
            sizes.append(first)
        elif kind in (kinds.ALPHA_K, kinds.P_SENSITIVE):
            sizes.append(second)
        elif kind in (kinds.DISTINCT, kinds.FREQUENCY, kinds.SUBTREES):
            sizes.append(first)
    guarded = any(kind != kinds.K_ANONYMITY for kind, *_ in asked)
    return int(np.ceil(max(sizes) - 1e-9)), guarded


def _orders(rows: NDArray[np.int32], widths: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return as many orders of the rows as there are columns, the b-th with column b last; and every row's position in
    each."""
    n, q = rows.shape
    sorted_rows, place = np.empty((q, n), np.int32), np.empty((q, n), np.int32)
    codes = [rows[:, b].astype(np.uint16 if widths[b] <= 1 << 16 else np.int32) for b in range(q)]
    current, count = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)
    for turn in range(2 * q - 1, -1, -1):
        b = turn % q
        if turn < q:
            sorted_rows[b] = current
            place[b, current] = count
        current = current[np.argsort(codes[b][current], kind="stable")]
    return sorted_rows, place
