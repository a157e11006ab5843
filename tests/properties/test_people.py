"""People with several rows: every class model against the definition, and releases made by growing classes."""

from __future__ import annotations

from itertools import pairwise
from math import isinf
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import noren as nr
from noren.models import MODELS, KAnonymity
from noren.models.base import Judgement, Model
from noren.models.class_check import ClassModel
from noren.models.verdict import Verdict
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.statements import CodeCells, take
from noren.statements.batch import PERSON
from tests.oracles import people as oracle
from tests.properties.test_class_models import CLASSWISE, LEVELS, heights, options_of
from tests.statements import exact_column

Table = tuple[int, list[int], list[int], list[int]]
"""How many values there are, and the class, the person and the value of every row."""


@st.composite
def tables(draw: st.DrawFn) -> Table:
    d, n = draw(st.integers(2, 5)), draw(st.integers(1, 18))

    def column(upper: int) -> list[int]:
        return draw(st.lists(st.integers(0, upper), min_size=n, max_size=n))

    return d, column(2), column(draw(st.integers(0, 7))), column(d - 1)


def judged(models: list[Model], table: Table, cuts: list[int], parts: bool = False) -> list[Verdict]:
    """The verdicts that count people, with the release cut into batches, or into parts that are merged."""
    d, keys, people, values = table
    columns = {
        "key": exact_column("key", 3, role=Role.QUASI_IDENTIFIER),
        "x": exact_column("x", d, role=Role.SENSITIVE, hierarchy=Hierarchy(LEVELS[d]), distances=heights(d)),
    }
    batch = {
        "key": CodeCells(3, np.array(keys, np.uint8)),
        "x": CodeCells(d, np.array(values, np.uint8)),
        PERSON: CodeCells(len(people), np.array(people, np.int64)),
    }
    whole = Judgement.of(columns, models, people=True)
    for begin, end in pairwise([0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]):
        if not parts:
            whole.observe(take(batch, slice(begin, end)))
            continue
        other = Judgement.of(columns, models, people=True)
        other.observe(take(batch, slice(begin, end)))
        whole.merge(other)
    return whole.verdicts()


@pytest.mark.parametrize("name", CLASSWISE)
@settings(max_examples=60)
@given(tables(), st.data())
def test_verdicts_count_people(name: str, table: Table, data: st.DataObject) -> None:
    d, keys, people, values = table
    options = data.draw(options_of(name, d))
    whole = oracle.gathered([0] * len(keys), people, values)[0]
    found = oracle.gathered(keys, people, values).values()
    truth = [(*oracle.judge(name, options, rows, whole, d, LEVELS[d]), len(rows)) for rows in found]
    if name in ("t-closeness", "delta-disclosure"):
        bound = options["t" if name == "t-closeness" else "delta"]
        assume(all(abs(figure - bound) > 1e-6 for figure, _, _ in truth))
    kind = MODELS[name]
    assert issubclass(kind, ClassModel)
    cuts = data.draw(st.lists(st.integers(0, 18), max_size=3))
    (verdict,) = judged([kind(on="x", **options)], table, cuts, parts=data.draw(st.booleans()))
    worst = (min if kind.higher_is_safer else max)(figure for figure, _, _ in truth)
    assert verdict.achieved == pytest.approx(worst, abs=1e-7) or (isinf(worst) and isinf(verdict.achieved))
    assert verdict.holds is all(good for _, good, _ in truth)
    assert verdict.breaches == sum(n for _, good, n in truth if not good)


@settings(max_examples=60)
@given(tables(), st.integers(2, 4), st.lists(st.integers(0, 18), max_size=3))
def test_k_anonymity_counts_people(table: Table, k: int, cuts: list[int]) -> None:
    _, keys, people, values = table
    sizes = [len(rows) for rows in oracle.gathered(keys, people, values).values()]
    (verdict,) = judged([KAnonymity(k=k)], table, cuts)
    assert (verdict.achieved, verdict.holds) == (min(sizes), min(sizes) >= k)


@settings(max_examples=60)
@given(tables(), st.data())
def test_one_row_a_person_is_the_usual_count(table: Table, data: st.DataObject) -> None:
    d, keys, _, values = table
    models: list[Model] = [MODELS[name](on="x", **data.draw(options_of(name, d))) for name in CLASSWISE]
    alone = judged(models, (d, keys, list(range(len(keys))), values), [])
    usual = Judgement.of(
        {
            "key": exact_column("key", 3, role=Role.QUASI_IDENTIFIER),
            "x": exact_column("x", d, role=Role.SENSITIVE, hierarchy=Hierarchy(LEVELS[d]), distances=heights(d)),
        },
        models,
    )
    usual.observe({"key": CodeCells(3, np.array(keys, np.uint8)), "x": CodeCells(d, np.array(values, np.uint8))})
    for one, other in zip(alone, usual.verdicts(), strict=True):
        assert (one.holds, one.breaches) == (other.holds, other.breaches)
        assert one.achieved == pytest.approx(other.achieved) or isinf(other.achieved)


# ---------------------------------------------------------------- releases


def visits(seed: int, people: int = 150, values: int = 8) -> pl.DataFrame:
    """Visits of people who come once to six times, mostly for the same reason; "row" finds a visit in the release."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 7, people)
    who = np.repeat(np.arange(people), rows)
    n = len(who)
    usual = np.repeat(rng.integers(0, values, people), rows)
    made = pl.DataFrame(
        {
            "who": [f"p{i:05}" for i in who],
            "age": np.repeat(rng.integers(18, 90, people), rows),
            "ward": rng.choice(list("abcd"), n),
            "dx": [f"d{x}" for x in np.where(rng.random(n) < 0.6, usual, rng.integers(0, values, n))],
        }
    )
    return made.sample(fraction=1, shuffle=True, seed=seed).with_columns(row=pl.int_range(n))


ROLES = {
    "who": "identifier",
    "age": "quasi-identifier",
    "ward": "quasi-identifier",
    "dx": "sensitive",
    "row": "plain",
}
ASKED: list[dict[str, Any]] = [
    {"model": "k-anonymity", "k": 4},
    {"model": "frequency-l-diversity", "on": "dx", "l": 2},
    {"model": "distinct-l-diversity", "on": "dx", "l": 3},
    {"model": "entropy-l-diversity", "on": "dx", "l": 2.0},
    {"model": "t-closeness", "on": "dx", "t": 0.45},
]


@pytest.mark.parametrize(
    ("method", "asked"),
    [("mondrian", ASKED), ("incognito", ASKED), ("hilbert", ASKED[:2])],
    ids=["mondrian", "incognito", "hilbert"],
)
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6))
def test_grown_classes_hold_for_people(method: str, asked: list[dict[str, Any]], seed: int) -> None:
    data = visits(seed)
    policy = nr.Policy(attributes=ROLES, require=asked, method=method, mechanism="ignored", people={"key": "who"})
    try:
        release = nr.anonymize(data, policy)
    except nr.errors.RequirementNotMet:
        assume(False)
    assert release.manifest.rows_are_people is False
    found = release.frame().join(data.select("row", "who"), on="row")
    assert len(found) == len(data)
    labels = sorted(set(found["dx"].to_list()))
    codes = [labels.index(x) for x in found["dx"].to_list()]
    keys = list(zip(map(str, found["age"].to_list()), map(str, found["ward"].to_list()), strict=True))
    people = found["who"].to_list()
    whole = oracle.gathered([0] * len(keys), people, codes)[0]
    for rows in oracle.gathered(keys, people, codes).values():
        for model in asked:
            options = {"distance": "equal"} | model
            assert oracle.judge(model["model"], options, rows, whole, len(labels), [labels])[1], model["model"]


def drawn(data: pl.DataFrame) -> pl.DataFrame:
    policy = nr.Policy(attributes=ROLES, require=[nr.models.FrequencyLDiversity(on="dx", l=3)], people={"key": "who"})
    frame = nr.anonymize(data, policy).frame().select("row", pl.col("dx").alias("set"))
    return data.join(frame, on="row").sort("row")


def test_rows_of_a_person_with_one_value_have_one_set() -> None:
    data = visits(3, people=400)
    made = drawn(data)
    sets = made.group_by("who", "dx").agg(pl.col("set").n_unique().alias("sets"), pl.len().alias("rows"))
    assert sets["rows"].max() > 2
    assert sets["sets"].to_list() == [1] * len(sets)
    others = made.unique(["who", "dx"]).group_by("dx").agg(pl.col("set").n_unique().alias("sets"), pl.len())
    assert (others["sets"] > 1).all()


def test_every_run_draws_anew() -> None:
    data = visits(3)
    first, second = drawn(data), drawn(data)
    assert first["row"].to_list() == second["row"].to_list()
    same = sum(a == b for a, b in zip(first["set"].to_list(), second["set"].to_list(), strict=True))
    assert same < len(data) / 2


def test_an_identifier_that_repeats_is_refused_with_both_ways_out() -> None:
    data = visits(1)
    policy = nr.Policy(attributes=ROLES, require=[nr.models.FrequencyLDiversity(on="dx", l=3)])
    with pytest.raises(nr.errors.PolicyError) as caught:
        nr.anonymize(data, policy)
    (problem,) = caught.value.problems
    assert problem.where == "people.key"
    assert 'key = "who"' in problem.hint
    assert 'rows = "independent"' in problem.hint
    assert "p0" not in str(caught.value)


def test_without_the_key_nobody_can_say_that_classes_hold() -> None:
    data = visits(5)
    policy = nr.Policy(attributes=ROLES, require=ASKED[:2], method="mondrian", people={"key": "who"})
    release = nr.anonymize(data, policy)
    assert [verdict.holds for verdict in release.verdicts] == [True, True]
    for verdicts in (nr.verify(release), nr.verify(release, policy)):
        assert [verdict.holds for verdict in verdicts] == [None, None]
        assert all("does not show whose rows they are" in verdict.statement for verdict in verdicts)
    stricter = nr.Policy(attributes=ROLES | {"dx": "plain"}, require=[KAnonymity(k=60)], method="mondrian")
    assert [verdict.holds for verdict in nr.verify(release, stricter)] == [False]
    assert all(verdict.holds for verdict in nr.verify(release_of_sets(data)))


def release_of_sets(data: pl.DataFrame) -> nr.Release:
    require = [nr.models.FrequencyLDiversity(on="dx", l=3)]
    return nr.anonymize(data, nr.Policy(attributes=ROLES, require=require, people={"key": "who"}))
