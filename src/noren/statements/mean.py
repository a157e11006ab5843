"""Cells that are the mean of a class of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from noren.errors import ReleaseError
from noren.schema.column import Column
from noren.statements.batch import Cells, CodeCells
from noren.statements.exact import NumberedStatement
from noren.statements.statement import Judge, ReadDesign, Statement
from noren.statements.texts import AGAIN

MOST_DECIMALS = 12
_MEANS = TypeAdapter(tuple[Annotated[float, Field(allow_inf_nan=False)] | None, ...])
_DECIMALS = TypeAdapter(Annotated[int, Field(ge=0, le=MOST_DECIMALS)])


@dataclass(frozen=True, eq=False)
class MeanStatement(NumberedStatement):
    """Each cell is the rounded mean of the records with this cell. Codes number the means; None if all numbers are
    missing.

    The values themselves are never listed: the column is open, and a cell leaves every number possible. Missing cells
    beside numbers take no part in a mean.
    """

    means: tuple[float | None, ...]
    decimals: int = 0

    form: ClassVar[str] = "mean"
    words: ClassVar[str] = "published as class means"
    numbers_of: ClassVar[str] = "means"
    is_key: ClassVar[bool] = True
    hides: ClassVar[bool] = True
    lists_values: ClassVar[bool] = False

    @property
    def kinds(self) -> int:
        return len(self.means)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Return the means as an array, NaN if all cells are missing."""
        return np.array([np.nan if mean is None else mean for mean in self.means], np.float64)

    def likelihood(self, cells: Cells) -> None:
        return None

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        """Return true: a mean excludes no number. `holds_truth` checks the means."""
        return np.ones(len(self.check_cells(cells)), bool)

    def holds_truth(self, cells: Cells, truth: NDArray[np.float64]) -> bool:
        """Return whether each cell is the mean of its records. Missing numbers are NaN."""
        codes = self.check_cells(cells)
        there = np.isfinite(truth)
        count = np.bincount(codes[there], minlength=self.kinds)
        total = np.bincount(codes[there], truth[there], minlength=self.kinds)
        used = np.bincount(codes, minlength=self.kinds) > 0
        none = np.isnan(self.numbers)
        if (used & (none != (count == 0))).any():
            return False
        slack = 0.5 * 10.0**-self.decimals + 1e-9 * float(np.abs(truth[there]).max(initial=0.0))
        some = used & ~none
        return bool((np.abs(total[some] / count[some] - self.numbers[some]) <= slack).all())

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_open(self, evidence)

    def label(self, code: Any) -> str:
        mean = self.means[code]
        return "(missing)" if mean is None else f"{mean:.{self.decimals}f}"

    def to_arrow(self, cells: Any) -> Any:
        import pyarrow as pa

        return pa.array(self.means, pa.float64()).take(pa.array(np.asarray(cells.data)))

    def from_arrow(self, column: Any) -> Cells:
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        try:
            if pa.types.is_string(column.type):
                column = pc.if_else(pc.equal(column, ""), None, column)
            found = pc.index_in(column.cast(pa.float64()), value_set=pa.array(self.means, pa.float64()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise ReleaseError(f"column {self.name!r} should hold means and does not.", hint=AGAIN) from None
        if found.null_count:
            raise ReleaseError(f"column {self.name!r} holds a mean that the manifest does not list.", hint=AGAIN)
        return CodeCells(self.kinds, found.to_numpy(zero_copy_only=False).astype(np.uint32))

    def field(self) -> dict[str, Any]:
        text = "The mean of the records that look alike, over those that have a number."
        return {"name": self.name, "type": "number", "description": text}

    def manifest_fields(self) -> dict[str, Any]:
        return {"means": list(self.means), "decimals": self.decimals}

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        cls.demand(fields, "means", "decimals")
        means = _MEANS.validate_python(fields["means"])
        if len(set(means)) != len(means):
            raise ValueError("a mean is listed twice")
        return cls(column, means, _DECIMALS.validate_python(fields["decimals"]))


def mean_cells(
    column: Column, numbers: NDArray[np.float64], classes: NDArray[np.int64], keep: NDArray[np.bool_]
) -> tuple[MeanStatement, CodeCells]:
    """Return the rounded means of the published records of every class, and every record's cell.

    numbers: what every record has, NaN where it is missing. The rounding depends on the reach of the numbers alone.
    """
    count = int(classes.max(initial=0)) + 1
    there = np.isfinite(numbers) & keep
    reach = float(np.ptp(numbers[there])) if there.any() else 0.0
    decimals = int(np.clip(3 - np.floor(np.log10(reach)), 0, MOST_DECIMALS)) if reach > 0 else 0
    sizes = np.bincount(classes[there], minlength=count)
    sums = np.bincount(classes[there], numbers[there], minlength=count)
    mean = np.where(sizes > 0, np.round(sums / np.maximum(sizes, 1), decimals) + 0.0, np.nan)
    listed, code = np.unique(mean, return_inverse=True)
    used = np.zeros(len(listed), bool)
    used[code.ravel()[classes[keep]]] = True
    place = np.cumsum(used) - 1
    means = tuple(None if np.isnan(m) else float(m) for m in listed[used])
    data = place[code.ravel()[classes]].astype(np.uint32)
    return MeanStatement(column.over(column.name, None, hierarchy=None), means, decimals), CodeCells(len(means), data)
