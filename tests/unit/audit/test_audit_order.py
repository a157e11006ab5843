"""Several attacks on one release: in which order they run, and that each result comes as soon as it is known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import ATTACKS, KNOWLEDGE, attack, iterate_attacks, make_attack, order_attacks
from noren.audit.predictable import Predictable
from noren.estimates.belief import posterior


@pytest.fixture(scope="module")
def release() -> nr.Release:
    people = pl.DataFrame({"town": ["Ulm", "Bonn"] * 200, "job": ["cook", "clerk", "miner", "nurse"] * 100})
    asked = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="job", l=2)]
    roles = {"town": "quasi-identifier", "job": "sensitive"}
    return nr.anonymize(people, nr.Policy(attributes=roles, require=asked, method="mondrian"))


def test_the_adversary_who_knows_least_comes_first(release) -> None:
    levels = list(KNOWLEDGE)
    known = [levels.index(kind.knows) for kind in ATTACKS.values()]
    assert known == sorted(known)
    assert ATTACKS["reidentification"].knows == levels[0]
    assert list(ATTACKS)[-1] == "known-records"
    assert "assumption" in ATTACKS["known-records"].adversary
    named = [make_attack(name, {}) for name in ("known-records", "minimality", "homogeneity")]
    assert [one.name for one in order_attacks(named)] == ["homogeneity", "minimality", "known-records"]
    assert [one["knows"] for one in attack(release).to_dict()["results"]][::5] == ["a person", "everybody else"]


def test_results_come_one_by_one_as_each_is_known(release, monkeypatch) -> None:
    begun = []
    monkeypatch.setattr(Predictable, "run", lambda self, case: begun.append(case) or [])
    results = iterate_attacks(release)
    assert next(results).attack == "reidentification"
    assert not begun, "what takes long has not begun when the first result is there"
    assert [one.attack for one in results] == ["homogeneity", "disclosure", "minimality", "known-records"]
    assert begun


def test_columns_learned_side_by_side_tell_the_same(monkeypatch) -> None:
    """Of a drawn secret beside three columns, read alone and two at a time."""
    rng = np.random.default_rng(6)
    age, town = rng.integers(0, 5, 900), rng.integers(0, 4, 900)
    ill = np.where(rng.random(900) < 0.6, age, rng.integers(0, 6, 900))
    people = pl.DataFrame({"age": age, "town": town, "sex": rng.integers(0, 2, 900), "ill": [f"ill {i}" for i in ill]})
    roles = {"age": "plain", "town": "plain", "sex": "plain", "ill": "sensitive"}
    asked = [nr.models.FrequencyLDiversity(on="ill", l=3)]
    drawn = nr.anonymize(people, nr.Policy(attributes=roles, require=asked, method="decoys"))
    one_by_one = attack(drawn, "bayes")
    assert len(one_by_one[0].facts["all_columns"]["used"]) > 1
    monkeypatch.setattr(posterior, "MANY", 1)
    assert attack(drawn, "bayes").to_dict() == one_by_one.to_dict()
