"""What a call means that leaves an option out: documented, written into scripts, and so never changed in passing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.errors import NorenError
from noren.release import set_tally
from noren.release.set_tally import SetTally
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, SetStatement
from noren.statements.set_cells import SetCells
from tests.statements import exact_column, set_column

INFERENCE = {"level": 0.95, "population": False}
DEFAULTS: dict[str, dict[str, Any]] = {
    "anonymize": {"file_format": "parquet"},
    "attack": {"sample": 100_000},
    "check": {"suppressed": "*"},
    "compare": {"among": ()},
    "make_report": {},
    "measure": {"quasi": (), "sensitive": (), "suppressed": "*"},
    "risk": {"quasi": (), "sensitive": (), "size": 4, "within": 0.05},
    "verify": {"show": 0},
    "Release.correlation": INFERENCE | {"by": ()},
    "Release.count": INFERENCE,
    "Release.difference": INFERENCE,
    "Release.estimate": INFERENCE,
    "Release.expand": {"limit": 1_000_000},
    "Release.impute": {"m": 20, "classes": 40, "impossible": ()},
    "Release.mean": INFERENCE | {"by": ()},
    "Release.publish": {"grant": ()},
    "Release.quantile": INFERENCE | {"by": (), "q": 0.5},
    "Release.ratio": INFERENCE,
    "Release.regress": {"family": "gaussian", "level": 0.95},
    "Release.save": {"file_format": "parquet"},
    "Release.standardize": {"level": 0.95, "population": False},
    "Release.test": {"seed": 0},
    "Release.variance": INFERENCE | {"by": ()},
}


def given(call: Callable[..., Any]) -> dict[str, Any]:
    """What is not said and is not nothing; functions that tell of progress are no option."""
    found = {name: one.default for name, one in inspect.signature(call).parameters.items()}
    return {
        name: one for name, one in found.items() if one not in (inspect.Parameter.empty, None) and not callable(one)
    }


def calls() -> dict[str, Callable[..., Any]]:
    own = {name: getattr(nr, name) for name in nr.__all__ if inspect.isfunction(getattr(nr, name))}
    methods = inspect.getmembers(nr.Release, inspect.isfunction)
    return own | {f"Release.{name}": one for name, one in methods if not name.startswith("_")}


def test_every_default_is_here() -> None:
    found = {name: given(call) for name, call in calls().items()}
    assert {name: one for name, one in found.items() if one} == {name: one for name, one in DEFAULTS.items() if one}


# ---------------------------------------------------------------- sets that are kept once


def tally(rows: int, *, sets: int = 3) -> tuple[SetTally, SetCells]:
    column = Column(role=Role.SENSITIVE).over("ill", Domain(("a", "b", "c", "d")))
    every = SetCells.from_codes(4, np.array([[0, 1], [1, 2], [2, 3]])[:sets])
    cells = every.take(np.arange(rows) % sets)
    return SetTally.of([SetStatement(column, DecoyDesign(d=4, eta=2))], [{"ill": cells}]), cells


@pytest.mark.parametrize("sets", [1, 3])
def test_sets_are_kept_once_where_records_are_many_beside_them(sets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_tally, "LEAST_ROWS", 10)
    monkeypatch.setattr(set_tally, "ROWS_PER_SET", 8)
    least = max(10, 8 * sets)
    for rows in (least - 1, least):
        found, cells = tally(rows, sets=sets)
        (column,) = found.columns()
        assert isinstance(column, SetStatement)
        assert (column.sets, column.side) == ((sets, "sets") if rows == least else (None, None))
        if rows == least:
            written = found.renumber_sets({"ill": cells})["ill"]
            assert (written.data == cells.data).all()  # type: ignore[attr-defined]
            assert written.ids.tolist() == (np.arange(rows) % sets).tolist()  # type: ignore[attr-defined]
            assert column.held is not None
            assert column.held.codes(2).tolist() == [[0, 1], [1, 2], [2, 3]][:sets]


def test_what_is_expected_is_taken_back_where_it_did_not_occur(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_tally, "LEAST_ROWS", 10)
    monkeypatch.setattr(set_tally, "ROWS_PER_SET", 8)
    column = Column(role=Role.SENSITIVE).over("ill", Domain(("a", "b", "c", "d")))
    statement = SetStatement(column, DecoyDesign(d=4, eta=2))
    for rows, kept in ((47, None), (48, 6)):
        (found,) = SetTally.expecting([statement], rows).columns()
        assert found.sets == kept  # type: ignore[attr-defined]
    seen = np.array([True, False, False, True, False, False])
    (less,) = SetTally.expecting([statement], 48).narrow_to({"ill": seen}).columns()
    assert less.held.codes(2).tolist() == [[0, 1], [1, 2]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("d", "least"), [(4, 10_000), (51, 8 * 1275)])
def test_from_so_many_rows_sets_are_kept_once(d: int, least: int) -> None:
    """Six sets of two out of four values, 1,275 out of 51: ten thousand rows at least, and eight for every set."""
    column = Column(role=Role.SENSITIVE).over("ill", Domain(tuple(map(str, range(d)))))
    for rows, kept in ((least - 1, None), (least, d * (d - 1) // 2)):
        (found,) = SetTally.expecting([SetStatement(column, DecoyDesign(d=d, eta=2))], rows).columns()
        assert found.sets == kept  # type: ignore[attr-defined]


def test_a_set_that_the_design_does_not_draw_is_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_tally, "LEAST_ROWS", 1)
    monkeypatch.setattr(set_tally, "ROWS_PER_SET", 1)
    found, _ = tally(12)
    found.columns()
    with pytest.raises(NorenError, match="a set that its design does not draw"):
        found.renumber_sets({"ill": SetCells(4, np.array([0b0111], np.uint8))})
    column = Column(role=Role.SENSITIVE).over("ill", Domain(("a", "b", "c", "d")))
    strange = SetTally.of(
        [SetStatement(column, DecoyDesign(d=4, eta=2))], [{"ill": SetCells(4, np.array([0b0111] * 12, np.uint8))}]
    )
    with pytest.raises(NorenError, match="a set that its design does not draw"):
        strange.columns()


def test_columns_of_other_forms_are_written_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one that is called like the numbers of sets."""
    monkeypatch.setattr(set_tally, "LEAST_ROWS", 1)
    monkeypatch.setattr(set_tally, "ROWS_PER_SET", 1)
    columns = [exact_column("town", 3), set_column("ill", 4), set_column("ID", 4)]
    sets = SetCells.from_codes(4, np.array([[0, 1], [2, 3]]))
    batch = {"town": CodeCells(3, np.array([0, 2])), "ill": sets, "ID": sets}
    found = SetTally.of(columns, [batch])
    town, ill, other = found.columns()
    assert town is columns[0]
    assert (ill.sets, other.sets) == (2, None)  # type: ignore[attr-defined]
    assert found.renumber_sets(batch)["town"] is batch["town"]


def test_no_rows_hold_no_strange_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_tally, "LEAST_ROWS", 1)
    monkeypatch.setattr(set_tally, "ROWS_PER_SET", 1)
    both = SetCells.from_codes(2, np.array([[0, 1], [0, 1]]))  # the only set of two out of two
    found = SetTally.of([set_column("ill", 2)], [{"ill": both}])
    (column,) = found.columns()
    assert column.sets == 1  # type: ignore[attr-defined]
    assert len(found.renumber_sets({"ill": both.take(slice(0, 0))})["ill"]) == 0


# ---------------------------------------------------------------- answers


@pytest.fixture(scope="module")
def plain() -> nr.Release:
    table = pl.DataFrame(
        {"sex": ["f", "m"] * 40, "pay": [float(i % 8) for i in range(80)], "town": ["u", "v", "w", "x"] * 20}
    )
    return nr.anonymize(table, nr.Policy(attributes=dict.fromkeys(table.columns, "plain"), require=[]))


def test_a_difference_is_of_the_numbers_whichever_is_named_first(plain: nr.Release) -> None:
    one, two = plain.test("sex", "pay"), plain.test("pay", "sex")
    assert (one.kind, one.of) == (two.kind, two.of) == ("difference", ("pay", "sex"))
    assert one.statistic == pytest.approx(two.statistic)


def test_counts_of_exact_columns_are_exact(plain: nr.Release) -> None:
    found = plain.count({"sex": "f"})
    assert (found.low, found.high) == (40, 40)
    wide = plain.count({"sex": "f"}, population=True)
    assert wide.low < 40 < wide.high


def test_means_of_exact_columns_are_means(plain: nr.Release) -> None:
    found = plain.mean("pay", by="sex").frame
    assert found["mean"].to_list() == pytest.approx([3.0, 4.0])
    assert plain.difference("pay", by="sex").frame["difference"].to_list()[-1] == pytest.approx(1.0)
