"""The cell is a general value: the truth lies somewhere under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from noren.schema.column import Column
from noren.schema.hierarchy import Hierarchy
from noren.schema.labels import misnamed, unlike
from noren.schema.nodes import Nodes, Tight, tree_of
from noren.statements.batch import Cells, CodeCells
from noren.statements.exact import codes_of
from noren.statements.statement import Judge, Likelihood, ReadDesign, Statement
from noren.statements.texts import labels_in

Code = Annotated[int, Field(ge=-(2**31), le=2**31)]
_LISTED = TypeAdapter(tuple[tuple[str, tuple[tuple[Code, Code], ...]], ...])


@dataclass(frozen=True, eq=False)
class NodeStatement(Statement):
    """Somewhere under this node. Codes number the nodes; `listed` are those that no published hierarchy names."""

    listed: Nodes | None = None
    tight: Tight | None = None

    form: ClassVar[str] = "node"
    words: ClassVar[str] = "published as general values"
    is_key: ClassVar[bool] = True
    hides: ClassVar[bool] = True

    @cached_property
    def catalogue(self) -> Nodes:
        """All nodes that a cell may be."""
        if self.listed is not None:
            return self.listed
        assert self.column.tree is not None
        return tree_of(self.column.tree).nodes

    def over(self, column: Column) -> NodeStatement:
        """The same nodes, whatever hierarchy the other column has: the cells are numbers of these."""
        return replace(self, column=column, listed=self.catalogue)

    @property
    def description(self) -> str:
        return "as general values"

    @property
    def nodes(self) -> Nodes:
        return self.catalogue

    @property
    def tightness(self) -> Tight | None:
        return self.tight

    @property
    def kinds(self) -> int:
        return len(self.catalogue)

    def likelihood(self, cells: Cells) -> Likelihood:
        codes = self.checked(cells)
        members, bounds = self.catalogue.flat_members(codes)
        return Likelihood(bounds, members, np.ones(len(members)))

    def spread(self, cells: Cells) -> NDArray[np.int64]:
        return self.catalogue.sizes[self.checked(cells)]

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return self.catalogue.covers(self.checked(cells), truth)

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        return np.bincount(self.checked(cells), minlength=self.kinds).astype(np.int64)

    def possible_counts(self, tally: NDArray[np.int64]) -> NDArray[np.int64]:
        members, bounds = self.catalogue.flat_members()
        weights = np.repeat(tally, np.diff(bounds))
        return np.bincount(members, weights, minlength=self.d).astype(np.int64)

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_classes(self, evidence)

    def checked(self, cells: Any) -> NDArray[np.int64]:
        if self.catalogue.d != self.d:
            raise self.disagrees(f"has no list of its general values over {self.d} values.")
        return codes_of(self, cells, self.kinds, "nodes")

    def key(self, cells: Cells) -> NDArray[np.int64]:
        return self.checked(cells)

    def label(self, code: Any) -> str:
        return self.catalogue.labels[code]

    def misnamed(self, hierarchy: Hierarchy | None = None) -> list[str]:
        if hierarchy is not None:
            return unlike(self.catalogue, hierarchy)
        if self.listed is None:  # a hierarchy names its nodes by itself
            return []
        return misnamed(self.domain, self.listed)

    def to_arrow(self, cells: Any) -> Any:
        import pyarrow as pa

        return pa.array(self.catalogue.labels, pa.string()).take(pa.array(np.asarray(cells.data)))

    def from_arrow(self, column: Any) -> Cells:
        return CodeCells(self.kinds, labels_in(self.name, self.catalogue.labels, column))

    @property
    def texts_path(self) -> str | None:
        return self.name

    def field(self) -> dict[str, Any]:
        text = "A general value; the manifest tells which values lie under it."
        return {"name": self.name, "type": "string", "description": text}

    def published(self) -> dict[str, Any]:
        said = {} if self.tight is None else {"tight": self.tight}
        if self.listed is None:
            return said
        runs = zip(self.listed.labels, self.listed.runs, strict=True)
        return {"nodes": [[label, [list(run) for run in covered]] for label, covered in runs], **said}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        if ("nodes" in fields) == (column.tree is not None) and not ("nodes" in fields and column.domain.hidden):
            raise ValueError("a generalised column takes its nodes from a hierarchy or from a list")
        cls.demand(fields, *(name for name in ("nodes", "tight") if name in fields))
        tight = fields.get("tight")
        if tight is not None and tight not in get_args(Tight):
            raise ValueError("what occurs in every class is the ends, the members or two subtrees")
        listed = None
        if "nodes" in fields:
            given = _LISTED.validate_python(fields["nodes"])
            listed = Nodes.from_runs(column.d, [label for label, _ in given], [runs for _, runs in given])
        made = cls(column, listed, cast("Tight | None", tight))
        if len(set(made.catalogue.labels)) != made.kinds:
            raise ValueError("two general values have one label")
        return made
