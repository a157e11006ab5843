"""The classes of `mondrian`: cut, refine, cut again, drop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.kernels import requirements as kinds
from noren.kernels.mondrian import cut
from noren.kernels.mondrian_refine import drop, refine
from noren.methods.base import CodedTable, RandomOrder
from noren.methods.mondrian_space import space_of
from noren.methods.mondrian_terms import term_rules
from noren.methods.requirements import Compiled, about_values, compiled
from noren.models.base import Model

if TYPE_CHECKING:
    from noren.methods.mondrian import Mondrian


class Workbench:
    """The records in the order in which the kernels have put them; every class lies in one piece.

    Records that look alike are told apart by a random order alone, so that their classes tell nothing of the input.
    """

    def __init__(
        self, table: CodedTable, requirements: Sequence[Model], order: RandomOrder, weights: Mapping[str, float]
    ) -> None:
        self.rules = compiled(table, about_values(requirements))
        self.terms = term_rules(table, requirements)
        self.space = space_of(table, weights)
        self.least, self.guarded = smallest_class(self.rules)
        secrets = np.zeros((table.n, max(1, len(self.rules.sensitive))), np.int32)
        for j, name in enumerate(self.rules.sensitive):
            secrets[:, j] = table.codes[name]
        self.who = np.asarray(order(table.n), np.int64)
        self.rows, self.secrets = self.space.rows[self.who], secrets[self.who]

    def divide(self, begins: NDArray[np.int64], relaxed: bool) -> NDArray[np.int64]:
        """Cut the parts that begin there; the marks of `cut`."""
        found = cut(  # type: ignore[call-arg]
            self.rows, self.secrets, self.who, begins, *self.space.costs, (*self.rules.arguments, self.terms),
            self.space.widths, self.least, self.guarded, relaxed,
        )  # fmt: skip
        return np.asarray(found)

    def refine(self, of: NDArray[np.int64], awake: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """One round over the classes that are awake. Changes `of`; returns which classes are worth another."""
        found = refine(  # type: ignore[call-arg]
            self.rows, self.secrets, of, awake, *self.space.costs, self._rules_by_row(), self.space.widths, self.least,
            self.guarded,
        )  # fmt: skip
        return np.asarray(found)

    def drop(self, of: NDArray[np.int64], count: int, budget: int) -> None:
        """Drop single records; their class becomes -1."""
        drop(  # type: ignore[call-arg]
            self.rows, self.secrets, of, count, *self.space.costs, self._rules_by_row(), self.least, self.guarded,
            self.space.total, budget,
        )  # fmt: skip

    def arrange(self, of: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bring the records of every class together again, classes in ascending order; where each came from."""
        together = np.argsort(of, kind="stable")
        self.rows, self.secrets, self.who = self.rows[together], self.secrets[together], self.who[together]
        return together

    def _rules_by_row(self) -> tuple[Any, ...]:
        terms = self.terms
        if len(terms.of):
            terms = terms._replace(profiles=terms.profiles[self.who])
        return (*self.rules.arguments, terms)


def classes_of(
    table: CodedTable, requirements: Sequence[Model], order: RandomOrder, method: Mondrian
) -> tuple[NDArray[np.int64], int]:
    """The class of every record (-1: dropped) and the number of classes. All records together meet the requirements."""
    bench = Workbench(table, requirements, order, method.weights)

    def divide(begins: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate([[0], np.flatnonzero(bench.divide(begins, not method.strict))])

    begins = divide(np.array([0, table.n]))
    awake = np.ones(table.n, bool)
    for _ in range(method.refinement):
        of, count = numbered(begins)
        touched = bench.refine(of, awake[begins[:-1]])
        if not touched.any():
            break
        awake = touched[of[bench.arrange(of)]]
        sizes = np.bincount(of, minlength=count)
        begins = divide(np.concatenate([[0], np.cumsum(sizes[sizes > 0])]))
    of, count = numbered(begins)
    budget = int(method.suppression * table.n + 1e-9)
    if budget:
        bench.drop(of, count, budget)
    classes = np.empty(table.n, np.int64)
    classes[bench.who] = of
    return classes, count


def numbered(begins: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The class of every row, given where the classes begin, and how many there are."""
    count = len(begins) - 1
    return np.repeat(np.arange(count), np.diff(begins)), count


def smallest_class(rules: Compiled) -> tuple[int, bool]:
    """The smallest class that any requirement permits, and whether one asks for more than a size."""
    sizes = [1.0]
    for kind, first, second in zip(rules.kinds.tolist(), rules.first.tolist(), rules.second.tolist(), strict=True):
        if kind == kinds.K_ANONYMITY:
            sizes.append(first)
        elif kind in (kinds.ALPHA_K, kinds.P_SENSITIVE):
            sizes.append(second)
        elif kind in (kinds.DISTINCT, kinds.FREQUENCY, kinds.SUBTREES):
            sizes.append(first)
    guarded = bool((rules.kinds != kinds.K_ANONYMITY).any())
    return int(np.ceil(max(sizes) - 1e-9)), guarded
