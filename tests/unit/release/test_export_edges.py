"""Releases for other tools: columns of terms, names of nothing, and numbers of rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import noren as nr
from noren.release.export import _guarded, _short, export, wide
from tests.unit.release.test_answers_edges import with_terms


def test_every_term_is_a_column() -> None:
    found = wide(with_terms())
    assert found.columns == ["signs=cough", "signs=fever", "town"]
    assert found["signs=cough"].to_list() == [1, 0, 0, 1]
    assert found["signs=fever"].to_list() == [1, 1, 0, 0]


def test_two_columns_may_come_to_one_name() -> None:
    table = pl.DataFrame({"a": ["b=c", "x", "y", "z"] * 10, "a=b": ["c", "d", "e", "f"] * 10})
    asked = [nr.models.FrequencyLDiversity(on=name, l=2) for name in table.columns]
    roles = dict.fromkeys(table.columns, "sensitive")
    made = wide(nr.anonymize(table, nr.Policy(attributes=roles, require=asked, dependence={"most": 1.0})))
    assert made.columns == ["a=b=c", "a=x", "a=y", "a=z", "a=b=c_", "a=b=d", "a=b=e", "a=b=f"]


def test_lists_are_joined_and_formulas_are_guarded() -> None:
    found = _guarded(pl.DataFrame({"=s": [["a", "b"], []], "t": ["=1", "x"]}))
    assert found.to_dict(as_series=False) == {"'=s": ["a;b", ""], "t": ["'=1", "x"]}


def test_a_name_of_nothing_is_a_name() -> None:
    assert _short(["", "a b", "ä", ""]) == ["v", "a_b", "v_", "v_2"]


def test_rows_of_every_table_are_numbered_from_one(tmp_path: Path) -> None:
    readers = pytest.importorskip("pyreadstat", reason="Stata needs the extra export")
    table = pl.DataFrame({"x": ["a", "b", "c", "d"] * 3, "y": ["u", "v"] * 6})
    asked = [nr.models.FrequencyLDiversity(on="x", l=2)]
    policy = nr.Policy(attributes={"x": "sensitive", "y": "plain"}, require=asked, dependence={"most": 1.0})
    export(nr.anonymize(table, policy), tmp_path / "out.DTA", "stata", m=2, seed=1)
    frame, meta = readers.read_dta(str(tmp_path / "out.DTA"))
    assert frame["_mi_id"].tolist() == [*range(1, 13)] * 2
    assert frame["_mi_m"].tolist() == [1] * 12 + [2] * 12
    assert meta.column_labels[2:] == ["x", "y"]
    assert [path.name for path in tmp_path.iterdir()] == ["out.DTA"]
