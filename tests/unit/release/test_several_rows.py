"""Where people have several rows their draws are shared, and every answer with an error says what that does to it."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.estimates.counts.estimate import SEVERAL_ROWS


def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(80), 5)
    town, ill = rng.choice(["Ulm", "Hof"], 80), rng.integers(0, 4, 80)
    return pl.DataFrame({"who": who, "town": town[who], "ill": ill[who], "visit": np.tile(np.arange(5), 80)})


@cache
def release(key: str | None) -> nr.Release:
    policy = nr.Policy(
        attributes={"who": "identifier", "town": "plain", "ill": "sensitive", "visit": "plain"},
        require=[nr.models.FrequencyLDiversity(on="ill", l=2)],
        people={"key": key} if key else {"rows": "independent"},
        dependence={"most": 1.0},
    )
    return nr.anonymize(table(), policy)


def answers(found: nr.Release) -> dict[str, str]:
    return {
        "estimate": found.estimate("ill").assumes,
        "population": found.estimate("town", population=True).assumes,
        "count": found.count({"ill": 1}).assumes,
        "exact count of a population": found.count({"town": "Ulm"}, population=True).assumes,
        "mean": found.mean("ill", by="town").assumes,
        "mean of a population": found.mean("visit", population=True).assumes,
        "regress": found.regress("ill ~ visit").assumes,
        "test": found.test("ill", "town", permutations=99).assumes,
        "test of exact columns": found.test("visit", "town", permutations=99).assumes,
    }


def test_what_shared_draws_do_to_errors_is_said() -> None:
    assert {name for name, told in answers(release("who")).items() if SEVERAL_ROWS not in told} == set()
    assert {name for name, told in answers(release(None)).items() if SEVERAL_ROWS in told} == set()


def test_what_has_no_error_does_not_mention_it() -> None:
    found = release("who")
    assert SEVERAL_ROWS not in found.count({"town": "Ulm"}).assumes
    assert SEVERAL_ROWS not in found.mean("visit").assumes
    assert found.count({"town": "Ulm"}).std_error == 0


@pytest.mark.parametrize(("key", "holds"), [("who", False), (None, True)])
def test_plausible_tables_of_people_with_several_rows_are_not_for_inference(key: str | None, holds: bool) -> None:
    made = release(key).impute(m=2, seed=1, model="pairs")
    assert made.holds is holds
    assert ("not for inference" in repr(made)) is not holds
