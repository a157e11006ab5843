"""Drafts that were tried: the unedited draft of a table whose columns tell each other runs, or says what to decide."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.policy.policy import Policy
from noren.policy.proposal import draft as untried
from noren.schema.roles import Role
from noren.sources.source import open_source
from noren.workflow import advice
from noren.workflow.advice import Findings, draft

N = 3000
RNG = np.random.default_rng(8)


def texts(name: str, codes: np.ndarray) -> pl.Series:
    return pl.Series(name, [f"{name[0]}{x}" for x in codes])


def two_grades() -> pl.DataFrame:
    """Secrets of which one says half of the other: below what a draft that is not tried notices."""
    first = RNG.integers(0, 6, N)
    second = np.where(first < 3, first, RNG.integers(3, 8, N))
    return pl.DataFrame({"alpha": texts("alpha", first), "beta": texts("beta", second)})


def found_out() -> pl.DataFrame:
    """A column of two values, half told by a column by which people are found."""
    school = RNG.integers(0, 8, N)
    told = np.where(school < 4, 0, RNG.integers(0, 2, N))
    others = {name: texts(name, RNG.integers(0, 6, N)) for name in ("alpha", "beta")}
    return pl.DataFrame({"school": texts("school", school), "quirk": texts("quirk", told), **others})


def at_odds() -> pl.DataFrame:
    """What people are found by tells what sounds like a secret: a person decides."""
    age = RNG.integers(20, 80, N)
    return pl.DataFrame({"age": age, "disease": texts("disease", np.where(age < 50, age // 10, RNG.integers(5, 9, N)))})


def roles(text: str) -> dict[str, Role]:
    return {name: one.role for name, one in Policy.parse(text).attributes.items()}


@pytest.mark.parametrize("table", [two_grades(), found_out()], ids=["two_grades", "found_out"])
def test_what_the_first_draft_would_stop_at_is_decided(table: pl.DataFrame) -> None:
    with pytest.raises(nr.errors.PolicyError, match="tells"):
        nr.anonymize(table, Policy.parse(untried(open_source(table))))
    policy = Policy.parse(draft(open_source(table)))
    release = nr.anonymize(table, policy)
    assert all(verdict.holds for verdict in release.verdicts)
    for result in nr.attack(release, "bayes", original=table, policy=policy):
        for published in result.shown:
            if published.name != "raw":
                assert published.summary["certain"] <= 0.05


def test_secrets_that_tell_each_other_are_put_together() -> None:
    text = draft(open_source(two_grades()))
    assert list(Policy.parse(text).composites.values()) == [("alpha", "beta")]


def test_of_a_secret_and_its_teller_the_one_that_matters_less_is_left_out_with_the_reason() -> None:
    text = draft(open_source(found_out()))
    assert [name for name, role in roles(text).items() if role is Role.DROP] == ["quirk"]
    assert "with school published too, the quirk of " in text
    assert "of the people would be certain; school is kept" in text


def test_between_what_people_are_found_by_and_a_secret_a_person_decides() -> None:
    table = at_odds()
    text = draft(open_source(table))
    assert "# - columns that tell each other: age and disease. `noren anonymize` stops there: decide." in text
    with pytest.raises(nr.errors.PolicyError, match="'age' tells 'disease'") as caught:
        nr.anonymize(table, Policy.parse(text))
    assert len(caught.value.problems) == 1


def test_a_draft_that_runs_stays_as_it_is() -> None:
    table = pl.DataFrame({name: texts(name, RNG.integers(0, 6, N)) for name in ("alpha", "beta", "city")})
    assert draft(open_source(table)) == untried(open_source(table))


def made(**sizes: int) -> Any:
    """A proposal as far as its correction looks at it: secrets of so many values."""
    guesses = {name: SimpleNamespace(size=size, role=Role.SENSITIVE) for name, size in sizes.items()}
    return SimpleNamespace(found=Findings(), together=(), names=lambda _: list(sizes), guesses=guesses)


def told(by: str, protected: str) -> Any:
    return SimpleNamespace(by=by, protected=protected, both=frozenset({by, protected}), share=0.5, more=0.5, surely=0.5)


def test_secrets_of_few_values_are_hidden_more_firmly() -> None:
    found: Any = [told("school", "quirk"), told("school", "ill")]
    assert set(advice._corrected(made(quirk=2, ill=8), None, found, join=True).closer) == {"quirk"}  # type: ignore[arg-type]


@pytest.mark.parametrize(("columns", "left_out"), [("abcdef", {"b", "d"}), ("abcde", set())])
def test_leaving_out_more_than_a_third_is_no_advice(
    columns: str, left_out: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "worth", lambda name, _: 3 if name in "bd" else 2)
    found: Any = [told("a", "b"), told("c", "d")]
    result = advice._without(made(**dict.fromkeys(columns, 8)), found, {})
    assert set(result.left_out) == left_out
    assert bool(result.undecided) != bool(left_out)
