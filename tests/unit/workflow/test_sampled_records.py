"""The records by which columns that disclose each other are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.sources import held
from noren.sources.csv import CsvSource
from noren.workflow import dependence
from noren.workflow.dependence import told
from noren.workflow.draft import Draft
from noren.workflow.prepare import prepare
from noren.workflow.settling import decide_plan, draft_plan

PEOPLE = 6000
CODE = np.random.default_rng(5).integers(0, 40, PEOPLE)
TABLE = pl.DataFrame(
    {
        "who": [f"p{i}" for i in range(PEOPLE)],
        "a": [f"a{x:02}" for x in CODE],
        "same": [f"b{x * 7 % 40:02}" for x in CODE],
        "other": [f"o{x}" for x in np.random.default_rng(6).integers(0, 12, PEOPLE)],
    }
)


def rules(**more: Any) -> nr.Policy:
    roles = {"who": "identifier", "a": "sensitive", "same": "plain", "other": "plain"}
    return nr.Policy(attributes=roles, require=[nr.models.FrequencyLDiversity(on="a", l=3)], **more)


def draft(table: pl.DataFrame, **more: Any) -> Draft:
    found = prepare(table, rules(**more))
    return draft_plan(found, decide_plan(found, rules(**more)), rules(**more))


@pytest.mark.parametrize("known", [1000, PEOPLE, 10 * PEOPLE])
def test_the_sample_is_what_the_search_looks_at(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "KNOWN", known)
    found = {one.by: one for one in told(draft(TABLE))}
    assert found["same"].share == 1.0
    assert (found["same"].asked, found["same"].people) == (dependence.ASKED, PEOPLE)
    assert found["other"].more <= 0.002


def test_records_of_the_sample_keep_what_belongs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "KNOWN", 500)
    one = draft(TABLE)
    truth, published = dependence._sampled(one)
    values = {name: np.array(one.by_name[name].domain.values)[truth[name]] for name in ("a", "same")}
    pairs = set(zip(values["a"].tolist(), values["same"].tolist(), strict=True))
    assert pairs <= set(TABLE.select("a", "same").rows())
    assert one.by_name["a"].covers(published["a"], truth["a"]).all()
    assert (published["same"].data == truth["same"]).all()  # type: ignore[attr-defined]


def test_one_row_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "KNOWN", 2000)
    person = pl.Series([f"p{i // 6}" for i in range(PEOPLE)])
    several = TABLE.with_columns(who=person, same=person)
    truth, _ = dependence._sampled(draft(several, people={"key": "who"}))
    assert 500 < len(truth["same"]) <= 1000
    assert len(np.unique(truth["same"])) == len(truth["same"])


def test_a_long_file_is_read_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once to count, once to compare columns, once to draw."""
    read: list[Any] = []
    whole = CsvSource.batches

    def counted(self: CsvSource, columns: Any) -> Any:
        read.append(columns)
        return whole(self, columns)

    monkeypatch.setattr(held, "MOST_BYTES", 0)
    monkeypatch.setattr(dependence, "KNOWN", 500)
    monkeypatch.setattr(CsvSource, "batches", counted)
    TABLE.drop("who", "same").write_csv(tmp_path / "table.csv")
    policy = nr.Policy(
        attributes={"a": "sensitive", "other": "plain"}, require=[nr.models.FrequencyLDiversity(on="a", l=3)]
    )
    nr.anonymize(tmp_path / "table.csv", policy, to=tmp_path / "release")
    assert len(read) == 3
