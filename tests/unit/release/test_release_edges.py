"""What a release says of itself and of places, and answers about single columns, by hand."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, variance
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError, ReleaseError
from noren.estimates.statistics.results import EXACT
from noren.release.release import is_address, is_release
from noren.release.store import KeptStore, MemoryStore

PEOPLE = pl.DataFrame(
    {
        "sex": ["f", "m", "m"] * 8,
        "pay": [float(i % 8) for i in range(24)],
        "age": [float(i * i % 11) for i in range(24)],
        "count": ["a", "b"] * 12,
        "records": ["c", "d"] * 12,
    }
)


@pytest.fixture(scope="module")
def plain() -> nr.Release:
    return nr.anonymize(PEOPLE, nr.Policy(attributes=dict.fromkeys(PEOPLE.columns, "plain")))


def drawn() -> nr.Release:
    roles = {"sex": "plain", "pay": "sensitive"}
    asked = [nr.models.FrequencyLDiversity(on="pay", l=2)]
    return nr.anonymize(
        PEOPLE.select("sex", "pay"), nr.Policy(attributes=roles, require=asked, dependence={"most": 1.0})
    )


# ---------------------------------------------------------------------- what it is called


def test_it_is_called_by_its_place_or_its_title(plain: nr.Release, tmp_path: Path) -> None:
    assert plain.title == "release"
    titled = nr.anonymize(PEOPLE, nr.Policy(title="Wages", attributes=dict.fromkeys(PEOPLE.columns, "plain")))
    assert titled.title == "Wages"
    path = titled.save(tmp_path / "wages")
    assert nr.open_release(path).title == str(path)
    assert (titled.directory, nr.open_release(path).directory) == (None, path)


def test_what_is_exact_is_not_listed_as_hidden(plain: nr.Release) -> None:
    assert repr(plain).endswith("; all published exactly>")
    assert repr(drawn()) == "<Release of 24 records: sex, pay; sets: pay>"


def test_nobody_signed_what_is_in_memory_or_not_signed(plain: nr.Release, tmp_path: Path) -> None:
    assert plain.signer is None
    assert nr.open_release(plain.save(tmp_path / "release")).signer is None


def test_rows_that_a_store_lost_are_not_saved(plain: nr.Release, tmp_path: Path) -> None:
    half = {name: cells.take(slice(0, 12)) for name, cells in plain.cells(plain.columns).items()}
    with pytest.raises(ReleaseError, match="12 rows"):
        nr.Release(plain.manifest, MemoryStore(half)).save(tmp_path / "release")
    assert not (tmp_path / "release").exists()


# ---------------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("place", "address"),
    [
        ("postgresql://host/base?schema=s", True),
        ("postgres://host/base", True),
        ("postgresql:/host", False),
        (Path("postgresql://host"), False),
        (None, False),
        (3, False),
    ],
)
def test_an_address_is_a_text_that_names_a_base(place: Any, address: bool) -> None:
    assert is_address(place) is address


def test_a_release_is_known_by_what_it_is_called(plain: nr.Release, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a\n1\n")
    yes = [
        plain,
        tmp_path,
        str(tmp_path),
        tmp_path.as_uri(),
        "postgresql://host/base?schema=s",
        "s3://bucket/patients",
        Path("s3://bucket/patients"),
    ]
    no = [
        tmp_path / "table.csv",
        str(tmp_path / "nothing"),
        (tmp_path / "table.csv").as_uri(),
        "postgresql://host/base?table=t",
        "postgresql://host/base?query=SELECT+1",
        "https://host/patients",
        PEOPLE,
        None,
    ]
    assert [is_release(one) for one in yes] == [True] * len(yes)
    assert [is_release(one) for one in no] == [False] * len(no)


# ---------------------------------------------------------------------- the un-aggregated form


def test_what_has_no_sets_is_not_expanded(plain: nr.Release) -> None:
    assert plain.expand().drop("record").equals(plain.frame())
    roles = {"sex": "plain", "pay": "sensitive"}
    asked = [{"model": "local-privacy", "on": ["pay"], "epsilon": 4}]
    changed = nr.anonymize(PEOPLE.select("sex", "pay"), nr.Policy(attributes=roles, require=asked, method="pram"))
    with pytest.raises(QueryError, match="has changed values and no sets to expand"):
        changed.expand()
    classes = {"attributes": {"sex": "plain", "pay": "quasi-identifier"}, "require": [nr.models.KAnonymity(k=3)]}
    coarse = nr.anonymize(PEOPLE.select("sex", "pay"), nr.Policy(**classes, method="mondrian"))
    with pytest.raises(QueryError, match="has general values and no sets to expand"):
        coarse.expand()
    assert drawn().expand().height > 24


# ---------------------------------------------------------------------- answers


def test_columns_that_are_called_like_an_answer_get_an_underscore(plain: nr.Release) -> None:
    found = plain.estimate(["count", "sex"], where={"sex": "m"})
    assert found.frame.columns == ["count_", "sex", "count", "std_error", "low", "high"]
    assert found.where == {"sex": "m"}
    assert found.order == {"count_": ("a", "b"), "sex": ("f", "m")}
    assert found.frame["count"].to_list() == [0, 8, 0, 8]
    assert plain.estimate("sex").where == {}
    assert plain.estimate("sex").frame["count"].to_list() == [8, 16]
    assert plain.mean("pay", by=["records", "sex"]).frame.columns[:2] == ["records_", "sex"]
    with pytest.raises(QueryError, match="needs at least one column"):
        plain.estimate(())
    with pytest.raises(QueryError, match="needs a condition"):
        plain.count({})


def test_numbers_of_columns_are_those_of_the_table(plain: nr.Release) -> None:
    pay, age = PEOPLE["pay"].to_list(), PEOPLE["age"].to_list()
    assert plain.variance("pay").frame["variance"].to_list() == pytest.approx([variance(pay)])
    assert plain.variance("age").frame["variance"].to_list() == pytest.approx([variance(age)])
    both = mean((p - mean(pay)) * (a - mean(age)) for p, a in zip(pay, age, strict=True)) * 24 / 23
    expected = both / (variance(pay) * variance(age)) ** 0.5
    assert plain.correlation("pay", "age").frame["correlation"].to_list() == pytest.approx([expected])
    assert plain.correlation("pay", "age").of == ("pay", "age")


def test_names_and_open_intervals_have_no_mean(plain: nr.Release) -> None:
    with pytest.raises(QueryError, match="'sex' holds no numbers"):
        plain.mean("sex")
    open_end = {"pay": {"role": "plain", "bins": [0, 4, float("inf")]}}
    release = nr.anonymize(PEOPLE.select("pay"), nr.Policy(attributes=open_end))
    with pytest.raises(QueryError, match="'pay' has an open interval"):
        release.mean("pay")


def test_a_column_of_texts_that_nobody_listed_has_no_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 3)
    release = nr.anonymize(pl.DataFrame({"note": list("abcdef")}), nr.Policy(attributes={"note": "plain"}))
    assert not release.column("note").lists_values
    with pytest.raises(QueryError, match="'note' holds no numbers"):
        release.mean("note")


def test_means_of_groups_have_the_mean_of_the_table() -> None:
    """Microaggregation publishes means, which list no values and still can be averaged."""
    roles = {"pay": "quasi-identifier", "age": "quasi-identifier", "sex": "plain"}
    policy = nr.Policy(attributes=roles, require=[nr.models.KAnonymity(k=3)], method="microaggregation")
    release = nr.anonymize(PEOPLE.select("pay", "age", "sex"), policy)
    with pytest.raises(QueryError, match="so its values cannot be counted"):
        release.estimate("pay")
    assert release.frame()["pay"].mean() == pytest.approx(mean(PEOPLE["pay"].to_list()), abs=5e-4)  # of three digits


def test_a_regression_says_what_it_rests_on(plain: nr.Release) -> None:
    assert plain.regress("pay ~ age").assumes == EXACT
    binned = {"pay": {"role": "plain", "bins": [0, 2, 4, 8]}, "age": {"role": "plain", "bins": [0, 5, 11]}}
    release = nr.anonymize(PEOPLE.select("pay", "age"), nr.Policy(attributes=binned))
    (pay,) = release.regress("pay ~ C(age)").notes  # levels stand for themselves
    (age,) = release.regress("`pay=[0, 2)` ~ age").notes
    assert "'pay'" in pay
    assert "'age'" in age
    _, *trend = release.test("pay", "age", kind="trend", permutations=99).notes
    assert trend == [pay, age]
    assert release.test("pay", "age", kind="difference", permutations=99).notes[1:] == (pay,)
    assert release.test("pay", "age", kind="independence", permutations=99).notes[1:] == ()


def test_tests_of_several_rows_of_a_person_say_so(plain: nr.Release) -> None:
    several = nr.Release(plain.manifest.model_copy(update={"rows_are_people": False}), plain.store)
    told = several.test("pay", "age", permutations=99).assumes
    assert told != plain.test("pay", "age", permutations=99).assumes
    assert several.regress("pay ~ age").assumes == told
    hidden = drawn()
    again = nr.Release(hidden.manifest.model_copy(update={"rows_are_people": False}), hidden.store)
    assert [one.impute(m=1, seed=1).rows_are_people for one in (hidden, again)] == [True, False]


# ---------------------------------------------------------------------- reading once


def test_what_was_worked_out_is_worked_out_once(plain: nr.Release) -> None:
    store, made = KeptStore(plain.store), iter(range(3))
    assert [store.remember(what, lambda: next(made)) for what in ("a", "a", "b", "a", "b")] == [0, 0, 1, 0, 1]
