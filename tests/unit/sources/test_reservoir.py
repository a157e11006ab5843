"""Records taken by chance while a table is counted: uniformly, exactly so many, and without another pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom

import noren as nr
from noren.sources import held
from noren.sources.csv import CsvSource
from noren.sources.sample import Reservoir, ReservoirSource
from noren.workflow import dependence
from noren.workflow.dependence import told
from noren.workflow.draft import Draft
from noren.workflow.prepare import prepare
from noren.workflow.settling import decide_plan, draft_plan

N, MOST, BATCH = 60, 15, 7


def batches(n: int, size: int) -> list[Any]:
    """Every record says its number, as a number and as a text of a dictionary."""
    whole = pa.table({"number": np.arange(n), "text": pa.array([f"t{i}" for i in range(n)]).dictionary_encode()})
    return whole.to_batches(size)


def sampled(n: int = N, most: int = MOST, size: int = BATCH, keep: Any = None, seed: int = 0) -> ReservoirSource:
    taken = Reservoir(most, ["text", "number"], seed=seed)
    for batch in batches(n, size):
        taken.add(batch)
    assert taken.seen == n
    return taken.of(np.ones(n, bool) if keep is None else keep, "a table")


def cells(source: ReservoirSource, name: str) -> list[Any]:
    return [cell for batch in source.batches([name]) for cell in batch.column(name).to_pylist()]


@pytest.mark.parametrize("size", [1, 7, 60])
def test_exactly_so_many_records_in_their_order_with_their_numbers(size: int) -> None:
    found = sampled(size=size)
    numbers = found.numbers(0, MOST).tolist()
    assert found.rows == len(numbers) == len(set(numbers)) == MOST
    assert numbers == sorted(numbers) == cells(found, "number")
    assert cells(found, "text") == [f"t{i}" for i in numbers]
    assert found.numbers(4, 3).tolist() == numbers[4:7]


def test_all_of_a_small_table() -> None:
    assert cells(sampled(most=N), "number") == list(range(N))
    assert cells(sampled(most=10 * N), "number") == list(range(N))


def test_every_record_and_every_pair_is_taken_equally_often() -> None:
    """All of n + n (n - 1) / 2 counts within what chance exceeds for one of them with less than 1e-9."""
    runs, n, most = 600, 16, 5
    together = np.zeros((n, n), np.int64)
    for run in range(runs):
        there = np.zeros(n, np.int64)
        there[sampled(n, most, 6, seed=run).numbers(0, most)] = 1
        together += np.outer(there, there)
    tail = 1e-9 / (n * (n + 1))
    single, pair = binom(runs, most / n), binom(runs, most * (most - 1) / (n * (n - 1)))
    for counts, law in ((np.diag(together), single), (together[np.triu_indices(n, 1)], pair)):
        assert law.ppf(tail) <= counts.min()
        assert counts.max() <= law.isf(tail)


def test_records_that_are_not_published_are_left_out() -> None:
    keep = np.arange(N) % 3 == 0
    found = cells(sampled(keep=keep), "number")
    assert found
    assert all(keep[found])
    assert sampled(keep=np.zeros(N, bool)).rows == 0


def test_texts_that_only_others_have_are_not_kept() -> None:
    kept = [text for batch in sampled().batches(["text"]) for text in batch.column("text").dictionary.to_pylist()]
    assert len(kept) < N


# ---------------------------------------------------------------------- columns that tell each other

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


def draft(table: pl.DataFrame, known: int, **more: Any) -> Draft:
    found = prepare(table, rules(**more), known=known)
    return draft_plan(found, decide_plan(found, rules(**more)), rules(**more))


@pytest.mark.parametrize("known", [1000, PEOPLE, 10 * PEOPLE])
def test_the_sample_is_what_the_search_looks_at(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "KNOWN", known)
    monkeypatch.setattr(dependence, "PickedSource", None)
    found = {one.by: one for one in told(draft(TABLE, known))}
    assert found["same"].share == 1.0
    assert (found["same"].asked, found["same"].people) == (dependence.ASKED, PEOPLE)
    assert found["other"].more <= 0.002


def test_records_of_the_sample_keep_what_belongs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "KNOWN", 500)
    one = draft(TABLE, 500)
    truth, published = dependence._sampled(one)
    values = {name: np.array(one.by_name[name].domain.values)[truth[name]] for name in ("a", "same")}
    pairs = set(zip(values["a"].tolist(), values["same"].tolist(), strict=True))
    assert pairs <= set(TABLE.select("a", "same").rows())
    assert one.by_name["a"].covers(published["a"], truth["a"]).all()
    assert (published["same"].data == truth["same"]).all()  # type: ignore[attr-defined]


def test_one_row_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "KNOWN", 2000)
    monkeypatch.setattr(dependence, "PickedSource", None)
    person = pl.Series([f"p{i // 6}" for i in range(PEOPLE)])
    several = TABLE.with_columns(who=person, same=person)
    truth, _ = dependence._sampled(draft(several, 2000, people={"key": "who"}))
    assert 500 < len(truth["same"]) <= 1000
    assert len(np.unique(truth["same"])) == len(truth["same"])


def test_where_most_records_are_left_out_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "KNOWN", 1000)
    one, rng = draft(TABLE, 1000), np.random.default_rng(1)
    assert isinstance(dependence._some(one, rng), ReservoirSource)
    one.keep = np.arange(PEOPLE) % 4 == 0
    one.records = int(one.keep.sum())
    assert isinstance(dependence._some(one, rng), dependence.PickedSource)
    one.keep = np.arange(PEOPLE) < 3  # of few all are wanted, and chance hardly took them all
    one.records = 3
    assert dependence._some(one, rng).rows == 3


def test_a_long_file_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once to count, once to draw."""
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
    assert len(read) == 2
