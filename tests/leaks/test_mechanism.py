"""What the rule of a method tells beyond the classes it publishes: whom it moved, what it refused to cut."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.methods import METHODS

ROLES = {"age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"}
ILLS = ("Angina", "Burn", "Cold", "Flu", "Gout")


def dominated(n: int = 1_200, seed: int = 5) -> pl.DataFrame:
    """Few different people, and in most groups of equal ones a secret that is too common."""
    rng = np.random.default_rng(seed)
    age, town = rng.integers(0, 20, n), rng.integers(0, 6, n)
    own = (age * 7 + town * 3) % len(ILLS)
    ill = np.where(rng.random(n) < 0.45, own, rng.integers(0, len(ILLS), n))
    towns = np.array(["Aalen", "Bonn", "Celle", "Dorsten", "Erfurt", "Fulda"])
    return pl.DataFrame({"age": 20 + age, "town": towns[town], "ill": np.array(ILLS)[ill]})


def policy(method: object, l: int = 2, *more: object) -> nr.Policy:  # noqa: E741
    asked = [nr.models.FrequencyLDiversity(on="ill", l=l), *more]
    return nr.Policy(attributes=ROLES, require=asked, method=method)


def attacked(table: pl.DataFrame, rules: nr.Policy):
    release = nr.anonymize(table, rules)
    (found,) = nr.attack(release, "minimality", original=table, policy=rules)
    return release, found


@pytest.mark.parametrize("method", ["sweep", "three-phase"])
def test_people_who_were_moved_have_the_dominant_secret(method: str) -> None:
    """What was published: nobody believes more than 1/2. What the rule tells: those who left all had the pillar."""
    table = dominated()
    _, found = attacked(table, policy(method))
    plain, told = found.scenarios
    assert found.facts["moved_of_one_secret"] > 20
    assert found.facts["moved_right"] == found.facts["moved_of_one_secret"]
    assert told.summary["gains"] > 0
    assert told.summary["above_promise"] > plain.summary["above_promise"]
    assert told.summary["mean_truth_belief"] > plain.summary["mean_truth_belief"]


def test_every_method_says_what_its_rule_tells() -> None:
    """A new method says how an adversary replays it, or why there is nothing to replay."""
    for name, kind in METHODS.items():
        rule = kind(name=name).mechanism()
        assert rule is not None, name
        assert rule.says, name
