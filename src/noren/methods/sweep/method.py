"""SWEEP: functional (tau,l)-diversity by generalising quasi-identifiers and, where needed, secrets (paper 004)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, prod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.engines import Plan, RandomOrder, Recode, Records
from noren.errors import PolicyError, Problem, RequirementNotMet
from noren.methods.base import ClassMethod, Method
from noren.methods.cover import automatic_hierarchy, common_nodes
from noren.methods.sweep.bounds import DIVERSITY, SERVED, Bound, arrays, bounds_of, combinations
from noren.methods.sweep.kernels.passes import Vectors, raise_values, sweep
from noren.methods.sweep.levels import (
    MOST_VECTORS,
    classes_of_rows,
    level_groups,
    level_vectors,
    list_entries,
    number_items,
    room_for,
)
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.ragged import in_order
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Tree, tree_of
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule


class Sweep(ClassMethod):
    """Generalise every record only as far as the requirements demand.

    Records with equal quasi-identifiers form a class if their secrets are diverse enough; those that stand in the way
    are swept on to the next more generalised values, vector by vector. What is left in the end shares one most
    generalised class, in which secrets are generalised until the requirement holds.
    """

    name: Literal["sweep"] = "sweep"
    sentence: ClassVar[str] = "Values are generalised record by record, only as far as the requirements demand."
    first_phase: ClassVar[bool] = True
    makes_intervals: ClassVar[bool] = True
    importance: tuple[str, ...] = Field(
        default=(),
        description=(
            "Quasi-identifiers in order of importance: the first stay precise longest; columns not listed follow."
        ),
    )
    chunk: int | None = Field(
        default=None,
        ge=2,
        description=(
            "Size of the groups into which records that fit into no diverse class are split, so that more secrets are "
            "generalised; by default these records form one class."
        ),
    )

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.moves import Moves

        return Moves(
            "groups are completed from precise to generalised values; records with too frequent secrets move on to "
            "more generalised groups",
            nested=self.chunk is None,
        )

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        from noren.methods.requirements import class_problems

        found = class_problems(self.name, roles, (), 0)
        for number, model in enumerate(requirements, 1):
            if model.model not in SERVED:
                message = f"the method {self.name!r} cannot meet {model.model}; it meets {', '.join(SERVED)}."
                hint = 'Use [method] name = "mondrian" or "incognito", or require tau-l-diversity.'
                found.append(Problem(f"require[{number}].model", message, hint))
            elif model.model == "k-anonymity" and self.chunk is not None and model.parameters()["k"] > self.chunk:
                message = f"groups of {self.chunk} records cannot meet k-anonymity of {model.parameters()['k']}."
                found.append(Problem("method.chunk", message, "Raise chunk to k, or remove it."))
        diversity = [model for model in requirements if model.model in DIVERSITY]
        if requirements and not diversity:
            message = f"the method {self.name!r} needs a diversity requirement on a sensitive column."
            found.append(Problem("require", message, 'Add [[require]] with model = "tau-l-diversity".'))
        shares = Counter(name for model in diversity if model.model != "distinct-l-diversity" for name in model.on)
        for number, model in enumerate(requirements, 1):
            if model.parameters().get("weights") and any(shares[name] > 1 for name in model.on):
                message = f"the method {self.name!r} takes no second requirement on a column with weights."
                found.append(Problem(f"require[{number}].weights", message, "Remove one of the requirements."))
        known = [name for name, role in roles.items() if role is Role.QUASI_IDENTIFIER]
        for name, times in Counter(self.importance).items():
            if name not in known or times > 1:
                wrong = "is no quasi-identifier" if name not in known else "is named twice"
                hint = f"List each of {', '.join(known)} at most once." if known else ""
                found.append(Problem("method.importance", f"column {name!r} {wrong}.", hint))
        return found

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression), cls(chunk=16, suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        quasi = (*self.importance, *(name for name in table.quasi if name not in self.importance))
        hierarchies = [automatic_hierarchy(table.columns[name], table.codes[name]) for name in quasi]
        count = prod(tree.height + 1 for tree in hierarchies)
        if count > MOST_VECTORS:
            message = f"the hierarchies have {count:,} combinations of levels; {self.name!r} tries all of them."
            hint = f"Use fewer quasi-identifiers or hierarchies of fewer levels, up to {MOST_VECTORS:,} combinations."
            raise PolicyError([Problem("attributes", message, hint)])
        size = max([1, *(int(m.parameters()["k"]) for m in requirements if m.model == "k-anonymity")])
        if size > table.n:
            message = f"k = {size} needs at least {size} records, and the table has {table.n}."
            raise RequirementNotMet(message, hint=f"The largest k is {table.n}.")
        bounds = bounds_of(table, requirements)
        run = Run.of(table, quasi, hierarchies, bounds, order)
        run.sweep(size)
        run.drop(floor(self.suppression * table.n + 1e-9), size)
        run.reopen(size)
        return run.publish(self.chunk)


@dataclass
class Run:
    """One sweep over a table: rows in order of priority, their items, sensitive nodes and classes so far."""

    table: Records
    quasi: Sequence[str]
    trees: list[Tree]
    bounds: list[Bound]
    information: NDArray[np.float64]
    vectors: NDArray[np.int64]
    grouping: Vectors
    codes: NDArray[np.int32]
    """(columns, items)"""
    item: NDArray[np.int32]
    rows: NDArray[np.int64]
    nodes: list[NDArray[np.int64]]
    """Per sensitive column: the node of every record."""
    classes: NDArray[np.int32]
    """The class of every record, -1 for the last one."""
    class_vector: NDArray[np.int32]
    class_size: NDArray[np.int64]
    keep: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        table: Records,
        quasi: Sequence[str],
        hierarchies: Sequence[Hierarchy],
        bounds: list[Bound],
        order: RandomOrder,
    ) -> Run:
        """Number the items at random and generalise secrets until the whole table meets the bounds."""
        information, vectors = level_vectors(hierarchies)
        groups = level_groups(hierarchies, vectors)
        codes = np.stack([np.asarray(table.codes[name], np.int32) for name in quasi])
        number, items = number_items(codes, [len(tree.leaves) for tree in hierarchies])
        item = order(items).astype(np.int32)[number]
        of_items = np.empty((len(codes), items), np.int32)
        of_items[:, item] = codes
        rows = in_order(item)
        run = cls(
            table, quasi, [tree_of(tree) for tree in hierarchies], bounds, information, vectors, groups, of_items, item,
            rows, [table.codes[bound.name].astype(np.int64) for bound in bounds], np.full(table.n, -1, np.int32),
            np.empty(0, np.int32), np.empty(0, np.int64), np.ones(table.n, bool),
        )  # fmt: skip
        run.generalise(rows, np.array([0, table.n]))
        return run

    def generalise(self, rows: NDArray[np.int64], limits: NDArray[np.int64]) -> None:
        """Generalise secrets of the classes rows[limits[c]:limits[c + 1]] until they meet the bounds."""
        for bound, nodes in zip(self.bounds, self.nodes, strict=True):
            mine = nodes[rows]
            if len(limits) == 2 and bound.met_by(mine):
                continue
            if raise_values(mine, limits, bound.alone, bound.tree.parent):
                message = f"even with all values of {bound.name!r} generalised, the bound on its shares does not hold."
                raise RequirementNotMet(message, hint="Make the weights more even, or raise tau.")
            nodes[rows] = mine

    def sweep(self, size: int) -> None:
        """Close classes of at least `size` records at all vectors but the most generalised."""
        self.close(slice(None, -1), size, -1)

    def close(self, which: slice, size: int, limit: int) -> None:
        """Close classes of at least `size` records at some vectors; for the limit see `noren.methods.sweep.kernels`."""
        items = self.codes.shape[1]
        code, combined = combinations(self.bounds, self.nodes)
        open_rows = self.rows[self.classes[self.rows] < 0]
        rows, begin, entries = list_entries(open_rows, self.item, code, items, len(combined))
        every, sensitive = self.grouping, arrays(self.bounds)
        vectors = every._replace(offset=every.offset[which], stride=every.stride[which], space=every.space[which])
        room, queue = room_for(entries, combined, sensitive, limit)
        closed = sweep(self.codes, vectors, entries, combined, sensitive, size, limit, room, queue)
        found = classes_of_rows(rows, begin, closed, self.table.n)
        self.classes = np.where(found >= 0, found + np.int32(len(self.class_vector)), self.classes)
        self.class_vector = np.concatenate([self.class_vector, closed.vector])
        self.class_size = np.concatenate([self.class_size, closed.size])

    def drop(self, limit: int, size: int) -> None:
        """Suppress records that prevent the last class from meeting the limits, at most `limit`."""
        waiting = self.classes < 0
        if not limit or not waiting.any():
            return
        closed = len(self.class_vector)
        self.close(slice(-1, None), 1, limit)
        kept = self.classes >= closed
        if 0 < kept.sum() < size and waiting.sum() <= limit:
            kept[:] = False
        self.keep &= kept | ~waiting
        self.classes[self.classes >= closed] = -1
        self.class_vector, self.class_size = self.class_vector[:closed], self.class_size[:closed]

    def reopen(self, size: int) -> None:
        """If the last class is too small, add the class with the smallest loss."""
        left = int(self.last.sum())
        if not 0 < left < size:
            return
        if not len(self.class_size):
            message = f"k = {size} needs at least {size} records, and {left} would be left."
            raise RequirementNotMet(message, hint="Lower k or suppression.")
        cost = self.class_size * (self.information[self.class_vector] - self.information[-1])
        self.classes[self.classes == int(np.argmin(cost))] = -1

    @property
    def last(self) -> NDArray[np.bool_]:
        """Return the records of the last class."""
        return self.keep & (self.classes < 0)

    def publish(self, chunk: int | None) -> Plan:
        """Generalise secrets of the last class, and return what every record publishes."""
        closed = self.classes >= 0
        vector = np.full(self.table.n, len(self.vectors) - 1)
        vector[closed] = self.class_vector[self.classes[closed]]
        columns = {}
        for j, (name, tree) in enumerate(zip(self.quasi, self.trees, strict=True)):
            columns[name] = Recode(tree.nodes, tree.at[self.vectors[vector, j], self.table.codes[name]])
        rows = self.rows[self.last[self.rows]]
        if chunk is None:
            self.generalise(rows, np.array([0, len(rows)]))
        elif len(rows):
            part = self._chunks(rows, chunk)
            count = int(part.max()) + 1
            for name, tree in zip(self.quasi, self.trees, strict=True):
                common = common_nodes(tree.at, self.table.codes[name][rows], part, count)
                columns[name].data[rows] = common[part]
            together = np.argsort(part, kind="stable")
            self.generalise(rows[together], np.searchsorted(part[together], np.arange(count + 1)))
        raised = 0
        for bound, nodes in zip(self.bounds, self.nodes, strict=True):
            general = int((nodes[self.keep] >= len(bound.weights)).sum())
            raised += general
            if general:
                columns[bound.name] = Recode(bound.tree.nodes, nodes)
        notes = [
            (
                f"{len(rows) / self.table.n:.1%} of the records are in the most generalised "
                f"class{'' if chunk is None else f', split into groups of {chunk}'}; {raised:,} secrets are "
                "generalised."
            )
        ]
        return Plan(columns, None if self.keep.all() else self.keep, notes)

    def _chunks(self, rows: NDArray[np.int64], chunk: int) -> NDArray[np.int64]:
        """Return the run of `chunk` records along the Hilbert curve of each row; the last run takes the rest."""
        from noren.methods.hilbert import along_curve

        codes = {name: self.table.codes[name][rows] for name in self.quasi}
        facts = {name: self.table.columns[name] for name in self.quasi}
        curve = along_curve(Records(len(rows), facts, codes), np.arange(len(rows)))
        part = np.empty(len(rows), np.int64)
        part[curve] = np.minimum(np.arange(len(rows)) // chunk, max(1, len(rows) // chunk) - 1)
        return part
