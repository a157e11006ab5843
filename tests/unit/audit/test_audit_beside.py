"""Attacks beside each other: the same results in the same order, and what goes wrong is told where it is asked for."""

from __future__ import annotations

from threading import current_thread, main_thread

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import applicable, attack, base, made
from noren.audit.base import Case
from noren.audit.predictable import Predictable
from noren.errors import QueryError
from noren.estimates.belief import posterior
from noren.report.material import run_attacks


@pytest.fixture(scope="module")
def release() -> nr.Release:
    people = pl.DataFrame({"town": ["Ulm", "Bonn"] * 200, "job": ["cook", "clerk", "miner", "nurse"] * 100})
    asked = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="job", l=2)]
    roles = {"town": "quasi-identifier", "job": "sensitive"}
    return nr.anonymize(people, nr.Policy(attributes=roles, require=asked, method="mondrian"))


def test_results_are_the_same_as_one_after_the_other(release, monkeypatch) -> None:
    one_by_one = attack(release).to_dict()
    monkeypatch.setattr(base, "LARGE", 1)
    assert attack(release).to_dict() == one_by_one
    found, refused = run_attacks(release, None, None, None, nr.progress.quiet)
    assert [one.to_dict()["attack"] for one in found] == [one["attack"] for one in one_by_one["results"]]
    assert "intersection" in refused


def test_who_stands_apart_runs_in_a_thread_of_large_releases(release, monkeypatch) -> None:
    where = []

    def run(self, case):
        where.append(current_thread() is main_thread())
        raise QueryError("nothing to be found.")

    monkeypatch.setattr(Predictable, "run", run)
    attacks = [made(name, {}) for name in applicable(release)]
    for rows in (10**9, 1):
        monkeypatch.setattr(base, "LARGE", rows)
        *_, last = [
            one for one, kind in zip(base.runs(attacks, Case(release)), attacks, strict=True) if kind.stands_apart
        ]
        with pytest.raises(QueryError, match="nothing to be found"):
            last()
    assert where == [True, False]


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
