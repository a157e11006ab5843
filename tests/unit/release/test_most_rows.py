"""A public bound on the rows of a person: declared, checked, published, and what it makes of recipients' errors."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from scipy.stats import binom

import noren as nr
from noren.errors import DataError, PolicyError, QueryError, ReleaseError
from noren.estimates.counts.estimate import SEVERAL_ROWS, UP_TO_ROWS
from noren.estimates.statistics.association import FEWEST, _weighed
from noren.release.answers import SeveralRows
from noren.release.manifest import Manifest, PublishedMargin
from noren.workflow.verify import kept_rows

PEOPLE, ROWS = 150, 6
COLUMNS = {"who": "identifier", "town": "plain", "ill": "sensitive", "visit": "plain"}


def table(seed: int = 0, people: int = PEOPLE, rows: int = ROWS) -> pl.DataFrame:
    """People whose rows are equal but for the number of the visit; town and illness are unrelated."""
    rng, who = np.random.default_rng(seed), np.repeat(np.arange(people), rows)
    town, ill = rng.choice(["Bonn", "Hof", "Ulm"], people), rng.integers(0, 5, people)
    return pl.DataFrame({"who": who, "town": town[who], "ill": ill[who], "visit": np.tile(np.arange(rows), people)})


def policy(most: int | None = ROWS, key: bool = True, **more: Any) -> nr.Policy:
    people: dict[str, Any] = {"key": "who"} if key else {}
    given: dict[str, Any] = {
        "attributes": COLUMNS,
        "require": [nr.models.FrequencyLDiversity(on="ill", l=2)],
        "people": people | ({} if most is None else {"most_rows": most}),
        "dependence": {"most": 1.0},
    }
    return nr.Policy(**(given | more))


@cache
def release(most: int | None = ROWS) -> nr.Release:
    return nr.anonymize(table(), policy(most))


def with_bound(most: int | None) -> nr.Release:
    """The very same cells under another bound: what is not random between two releases can be compared."""
    found = release()
    return nr.Release(found.manifest.model_copy(update={"most_rows": most}), found.store)


# ---------------------------------------------------------------------- the policy


def test_a_bound_needs_the_key_of_people_and_room_for_one_row() -> None:
    with pytest.raises(PolicyError, match="most_rows needs the key of people"):
        policy(3, key=False)
    for wrong in (0, 1001):
        with pytest.raises(PolicyError, match=r"people\.most_rows"):
            policy(wrong)
    assert policy(3).people.most_rows == 3


def test_a_policy_with_a_bound_is_written_as_it_is_read() -> None:
    read = nr.Policy.parse(policy(4, margins=[{"of": ["ill"], "epsilon": 1.0}]).to_toml())
    assert (read.people.most_rows, read.margins[0].rows) == (4, 4)


def test_margins_take_the_bound_or_agree_with_it() -> None:
    margin = {"of": ["ill"], "epsilon": 1.0}
    assert policy(4, margins=[margin]).margins[0].sensitivity == 8
    assert policy(4, margins=[margin | {"rows": 4}]).margins[0].rows == 4
    with pytest.raises(PolicyError, match=r"rows = 3 contradicts most_rows = 4"):
        policy(4, margins=[margin | {"rows": 3}])


def test_a_table_in_which_somebody_has_more_rows_is_refused_and_shows_no_cell() -> None:
    with pytest.raises(DataError, match=r"150 people have more rows than \[people\] most_rows = 5") as told:
        nr.anonymize(table(), policy(ROWS - 1))
    assert "Raise most_rows" in str(told.value)
    one = pl.concat([table(), table()[:1]])
    with pytest.raises(DataError, match="1 person has more rows"):
        nr.anonymize(one, policy())


# ---------------------------------------------------------------------- the manifest


def test_the_bound_is_published_and_read_again(tmp_path: Path) -> None:
    release().save(tmp_path / "release")
    read = nr.open_release(tmp_path / "release")
    assert read.manifest.most_rows == ROWS
    assert f"a person may have up to {ROWS}" in (tmp_path / "release" / "README.md").read_text()
    assert nr.verify(read, policy(), original=table()).hold
    assert nr.verify(read).hold


def test_a_release_without_a_bound_does_not_mention_one() -> None:
    assert "most_rows" not in release(None).manifest.model_dump()
    alone = nr.anonymize(table(rows=1), policy()).manifest
    assert (alone.rows_are_people, alone.most_rows) == (True, None)


@pytest.mark.parametrize("wrong", [0, 1001, 2.5, "six"])
def test_a_manifest_bounds_by_a_whole_number(wrong: Any) -> None:
    given = release().manifest.model_dump(mode="json")
    with pytest.raises(ValidationError, match="most_rows"):
        Manifest.model_validate(given | {"most_rows": wrong})
    with pytest.raises(ValidationError, match="records are people, or a person has several"):
        Manifest.model_validate(given | {"rows_are_people": True})


def test_a_smaller_bound_written_into_a_release_is_found(tmp_path: Path) -> None:
    release().save(tmp_path / "release")
    path = tmp_path / "release" / "datapackage.json"
    content = json.loads(path.read_text())
    content["noren"]["most_rows"] = 2
    path.write_text(json.dumps(content, indent=2))
    with pytest.raises(ReleaseError):  # the page for people says another
        nr.verify(tmp_path / "release")
    (failed,) = nr.verify(with_bound(2), policy()).failed
    assert (failed.model, failed.required, failed.achieved) == ("most-rows", 6, 2)
    (failed,) = nr.verify(with_bound(None), policy()).failed
    assert "release nothing" in failed.statement
    (failed,) = nr.verify(with_bound(2), policy(2), original=table()).failed
    assert (failed.model, failed.achieved, failed.breaches) == ("most-rows", 6, PEOPLE)


# ---------------------------------------------------------------------- the recipient


def test_what_errors_allow_for_follows_from_the_manifest() -> None:
    assert SeveralRows.of(with_bound(6).manifest) == (6, UP_TO_ROWS.format(6))
    assert SeveralRows.of(with_bound(None).manifest) == (1, SEVERAL_ROWS)
    assert SeveralRows.of(with_bound(1).manifest) == (1, "")


def _errors(found: nr.Release) -> dict[str, list[float]]:
    answers: dict[str, Any] = {
        "linear counts": found.estimate("ill", estimator="linear"),
        "counts of two columns": found.estimate(["town", "ill"], estimator="linear"),
        "counts of a population": found.estimate("town", population=True),
        "mean": found.mean("ill", by="town"),
        "mean of a population": found.mean("visit", population=True),
        "variance": found.variance("ill"),
        "correlation": found.correlation("ill", "visit"),
        "difference": found.difference("ill", by="town"),
        "ratio": found.ratio("ill", by="town"),
        "regression": found.regress("ill ~ visit"),
        "regression by likelihood": found.regress("ill ~ visit", estimator="likelihood"),
    }
    out = {name: answer.frame["std_error"].to_list() for name, answer in answers.items()}
    return out | {"count of a population": [found.count({"town": "Ulm"}, population=True).std_error]}


def test_errors_grow_by_the_square_root_of_the_bound() -> None:
    one, four = _errors(with_bound(1)), _errors(with_bound(4))
    assert one.keys() == four.keys()
    for name, errors in one.items():
        assert four[name] == pytest.approx([2 * error for error in errors], rel=1e-6), name


def test_intervals_grow_and_hard_facts_stay() -> None:
    one, four = with_bound(1), with_bound(4)
    for narrow, wide in zip(one.estimate("ill"), four.estimate("ill"), strict=True):
        assert wide["count"] == narrow["count"]
        assert wide["low"] <= narrow["low"] <= narrow["high"] <= wide["high"]
    assert [row["low"] for row in four.quantile("ill")] <= [row["low"] for row in one.quantile("ill")]
    exact = four.count({"town": "Ulm"})
    assert (exact.std_error, exact.low, exact.high) == (0, exact.count, exact.count)
    assert four.mean("visit").frame["std_error"].to_list() == [0]


def test_answers_say_what_their_errors_allow_for() -> None:
    told = UP_TO_ROWS.format(ROWS)
    found = release()
    answers = (found.estimate("ill"), found.mean("ill"), found.regress("ill ~ visit"), found.test("ill", "town"))
    assert all(told in answer.assumes and SEVERAL_ROWS not in answer.assumes for answer in answers)
    alone = with_bound(1)
    assert not any("rows" in answer.assumes for answer in (alone.estimate("ill"), alone.mean("ill")))
    assert told not in found.count({"town": "Ulm"}).assumes
    assert alone.impute(m=2, seed=1, model="pairs").holds
    assert not found.impute(m=2, seed=1, model="pairs").holds


def test_a_test_of_too_few_people_is_refused() -> None:
    few = nr.anonymize(table(people=40), policy())
    assert few.test("ill", "town").records == 40 * ROWS
    with pytest.raises(QueryError, match=f"fewer than {FEWEST} people"):
        few.test("ill", "town", where={"visit": [0, 1]})  # of 80 records, as far as anybody can tell


RELEASES = 80
RARE = 1e-6
"""How often the simulation may fail by chance."""


@cache
def simulated() -> dict[str, int]:
    """In how many releases an interval held the truth, and in how many a test saw what is not there."""
    found = {"count": 0, "mean": 0, "population": 0, "rejected": 0}
    for seed in range(RELEASES):
        data = table(seed)
        made = nr.anonymize(data, policy())
        row = next(row for row in made.estimate("ill") if row["ill"] == "1")
        found["count"] += row["low"] <= (data["ill"] == 1).sum() <= row["high"]
        (row,) = made.mean("ill")
        found["mean"] += row["low"] <= float(np.mean(data["ill"].to_numpy())) <= row["high"]
        (row,) = made.mean("ill", population=True)
        found["population"] += row["low"] <= 2 <= row["high"]
        found["rejected"] += made.test("ill", "town", kind="independence", permutations=199).p_value <= 0.05
    return found


@pytest.mark.parametrize("what", ["count", "mean", "population"])
def test_intervals_hold_as_often_as_they_say(what: str) -> None:
    """95% of 80 releases, but for chance; without a bound it is six in ten, far below."""
    assert simulated()[what] >= binom.ppf(RARE, RELEASES, 0.95)


def test_a_test_sees_what_is_not_there_no_more_often_than_it_says() -> None:
    assert simulated()["rejected"] <= binom.isf(RARE, RELEASES, 0.05)


def test_margins_are_weighed_with_errors_that_allow_for_rows() -> None:
    found, truth = with_bound(4), table()["ill"].value_counts().sort("ill")["count"]
    margin = PublishedMargin(of=("ill",), epsilon=1.0, sensitivity=2 * ROWS, counts=tuple(truth))
    beside = nr.Release(found.manifest.model_copy(update={"margins": (margin,)}), found.store)
    own = np.square(found.estimate("ill", estimator="linear").frame["std_error"].to_numpy())
    noise = np.square(beside.margins[0]["std_error"].to_numpy())
    weighed = 1 / (1 / own + 1 / noise)
    answer = beside.estimate("ill", estimator="linear")
    assert np.square(answer.frame["std_error"].to_numpy()) == pytest.approx(weighed)
    counts = answer.frame["count"].to_numpy()
    sampled = beside.estimate("ill", estimator="linear", population=True).frame["std_error"].to_numpy()
    assert np.square(sampled) == pytest.approx(weighed + 4 * counts * (1 - counts / (PEOPLE * ROWS)))


@pytest.mark.parametrize(
    ("most", "sample", "suppressed", "holds", "breaches"),
    [(3, None, 0, True, 0), (2, None, 0, False, 1), (2, 0.5, 0, None, 0), (2, None, 1, None, 0), (3, 0.5, 1, True, 0)],
)
def test_who_has_more_rows_in_the_original_may_have_been_left_out(
    most: int, sample: float | None, suppressed: int, holds: bool | None, breaches: int
) -> None:
    made: Any = SimpleNamespace(
        manifest=SimpleNamespace(most_rows=most, sample=sample), suppressed=suppressed, records=4
    )
    truth: Any = SimpleNamespace(table=SimpleNamespace(people=np.array([0, 1, 1, 1])))
    (found,) = kept_rows(made, policy(), truth)
    assert (found.holds, found.breaches, found.achieved) == (holds, breaches, 3)
    assert kept_rows(made, policy(None, key=False), truth) == []


def test_a_weighted_test_allows_for_rows_too() -> None:
    rng = np.random.default_rng(5)
    left, right, weights = rng.standard_normal((200, 2)), rng.standard_normal((200, 1)), rng.uniform(0.5, 1.5, 200)
    right = right + 0.3 * left[:, :1]
    one, four = (_weighed(left, right, weights, 499, 0, most) for most in (1.0, 4.0))
    assert four.statistic == pytest.approx(one.statistic / 4)
    assert one.p_value < 0.01 < four.p_value


def test_models_of_general_cells_say_what_their_errors_allow_for() -> None:
    given = {"attributes": COLUMNS | {"town": "quasi-identifier", "visit": "quasi-identifier", "ill": "plain"}}
    asked = policy(require=[nr.models.KAnonymity(k=5)], method={"name": "mondrian"}, **given)
    fitted = nr.anonymize(table(), asked).regress("ill ~ visit")
    assert fitted.estimator == "likelihood"
    assert UP_TO_ROWS.format(ROWS) in fitted.assumes
