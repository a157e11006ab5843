"""Attacks on many people are measured on a sample: what it says of all, with which error, and what stays exact."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import noren as nr
from noren.audit import Case, attack, make_attack, reasons
from noren.audit.patterns import moments, neighbours, trend
from noren.audit.sample import Sample, sample_of
from noren.audit.sets import Sets, published_sets
from noren.cli.main import main
from noren.engines.finding import Finder, exact_nodes
from noren.release.release import Release
from noren.statements import CodeCells
from tests.unit.audit.world import secret

PEOPLE, FEW = 3_000, 600
DRAWN = {"age": "quasi-identifier", "town": "quasi-identifier", "job": "sensitive", "ill": "sensitive"}


def people() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    town = rng.integers(0, 8, PEOPLE)
    job = (town + rng.integers(0, 4, PEOPLE)) % 8
    ill = np.minimum(rng.geometric(0.35, PEOPLE) - 1, 7)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 60, PEOPLE),
            "town": [f"town {i}" for i in town],
            "job": [f"job {i}" for i in job],
            "ill": [f"ill {i}" for i in ill],
        }
    )


def rules(method: str) -> nr.Policy:
    if method == "decoys":
        asked = [nr.models.DistinctLDiversity(on=("job", "ill"), l=3)]
        return nr.Policy(attributes=DRAWN, require=asked, method=method, dependence={"most": 0.9})
    roles = DRAWN | ({"job": "quasi-identifier"} if method == "hilbert" else {})
    secrets = ("ill",) if method == "hilbert" else ("job", "ill")
    asked = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on=secrets, l=2)]
    return nr.Policy(attributes=roles, require=asked, method=method)


@pytest.fixture(scope="module", params=["decoys", "mondrian", "hilbert"])
def world(request: pytest.FixtureRequest) -> tuple[Release, nr.Policy, pl.DataFrame]:
    policy, table = rules(request.param), people()
    return nr.anonymize(table, policy), policy, table


def test_a_sample_is_uniform_and_the_same_again() -> None:
    some = sample_of(1000, 100)
    assert (some.lines == sample_of(1000, 100).lines).all()
    assert len(np.unique(some.lines)) == 100
    assert sample_of(100, 100).whole
    assert sample_of(1000, 0).whole
    assert sample_of(1000, 100)[np.arange(1000) * 2].tolist() == (some.lines * 2).tolist()
    hits = np.bincount(sample_of(200_000, 20_000).lines // 20_000, minlength=10)
    assert np.abs(hits - 2_000).max() < 5 * 2_000**0.5


def test_errors_are_those_of_drawing_without_replacement() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(2_000) < 0.3
    inside, off = 0, []
    for _ in range(400):
        some = Sample(2_000, np.sort(rng.choice(2_000, 500, replace=False)))
        found = float(truth[some.lines].mean())
        low, high = some.bounds({"share": found}, ("share",))["share"]
        inside += low <= truth.mean() <= high
        off.append(abs(found - truth.mean()))
    assert inside / 400 > 0.95 - 5 * (0.05 * 0.95 / 400) ** 0.5
    assert np.quantile(off, 0.95) <= some.margin
    assert some.margin == pytest.approx(1.96 * 0.5 / 500**0.5 * (1500 / 1999) ** 0.5, rel=1e-3)
    assert some.count(5).startswith("about 20 (")
    assert some.scaled(5) == 20


def test_a_sample_keeps_the_sets_it_needs() -> None:
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, 4, 300), rng.integers(0, 3, 300)]
    finder = Finder([exact_nodes(4), exact_nodes(3)], codes, 300)
    (whole,) = finder.candidates(codes, 300)
    some = sample_of(300, 40)
    part = some.among(whole)
    sets = {
        int(p): set(part.order[part.bounds[s] : part.bounds[s + 1]]) for p, s in zip(part.people, part.of, strict=True)
    }
    for person, s in zip(whole.people, whole.of, strict=True):
        if some.place[person] >= 0:
            assert sets[int(some.place[person])] == set(whole.order[whole.bounds[s] : whole.bounds[s + 1]])
    assert sorted(sets) == list(range(40))


@pytest.mark.parametrize("holder", [True, False])
def test_shares_of_a_sample_lie_near_those_of_all(world: tuple[Release, nr.Policy, pl.DataFrame], holder: bool) -> None:
    """Every attack with a lowered limit, against itself on everybody: six standard errors at most, the same seeds."""
    release, policy, table = world
    given = (policy, table) if holder else (None, None)
    error = 0.5 / FEW**0.5 * (1 - FEW / PEOPLE) ** 0.5
    compared = 0
    for name, reason in reasons(release).items():
        if reason is not None or name in ("intersection", "predictable"):
            continue
        exact = make_attack(name, {}).run(Case(release, *given, most=0))
        rough = make_attack(name, {}).run(Case(release, *given, most=FEW))
        for whole, some in zip(exact, rough, strict=True):
            few = {scenario.name: scenario for scenario in some.scenarios}
            for one in whole.scenarios:
                if name == "bayes" and not one.name.startswith("overall"):
                    continue  # what all columns tell is learned from those who are measured
                assert one.of is None
                assert few[one.name].of == PEOPLE
                assert few[one.name].frame.height <= FEW < one.frame.height
                for share in set(whole.shares) & one.summary.keys():
                    near = pytest.approx(one.summary[share], abs=6 * error)
                    assert few[one.name].summary[share] == near, (name, one.name, share)
                    compared += 1
            told = any(note.startswith("measured on a random sample of 600 of 3,000") for note in some.notes)
            assert told or name == "minimality" or (not holder and name == "reidentification"), (name, some.notes)
    assert compared > 8


def test_figures_that_cost_nothing_are_of_everybody(world: tuple[Release, nr.Policy, pl.DataFrame]) -> None:
    release, policy, table = world
    (exact,) = attack(release, "reidentification", original=table, policy=policy, sample=0)
    (rough,) = attack(release, "reidentification", original=table, policy=policy, sample=FEW)
    for name in ("raw", "release-rows"):
        assert rough.scenario(name).summary == exact.scenario(name).summary


def test_up_to_the_limit_nothing_changes(world: tuple[Release, nr.Policy, pl.DataFrame]) -> None:
    release, policy, table = world
    for name in ("homogeneity", "reidentification"):
        exact = attack(release, name, original=table, policy=policy, sample=0)
        same = attack(release, name, original=table, policy=policy, sample=PEOPLE)
        assert [one.to_dict() for one in exact] == [one.to_dict() for one in same]
        assert "of" not in exact[0].to_dict()["scenarios"][0]


def test_the_command_says_what_was_measured(tmp_path: Path) -> None:
    table, policy = people(), rules("mondrian")
    table.write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.toml").write_text(policy.to_toml())
    nr.anonymize(table, policy).save(tmp_path / "release")
    base = ["audit", str(tmp_path / "release"), "--attack", "homogeneity", "--sample", str(FEW)]
    base += ["--original", str(tmp_path / "people.csv"), "--policy", str(tmp_path / "policy.toml")]
    shown = CliRunner().invoke(main, base)
    assert shown.exit_code == 0, shown.output
    assert f"easured on a random sample of {FEW} of {PEOPLE:,} people" in " ".join(shown.output.split())
    told = json.loads(CliRunner().invoke(main, [*base, "--json"]).output)
    scenario = told["results"][0]["scenarios"][0]
    assert (scenario["lines"], scenario["of"]) == (FEW, PEOPLE)
    low, high = scenario["bounds"]["right"]
    assert low < scenario["summary"]["right"] < high


def matrix(codes: NDArray, d: int) -> NDArray[np.float64]:
    out = np.zeros((len(codes), d))
    np.put_along_axis(out, codes.astype(np.int64), 1.0, axis=1)
    out -= out.mean(axis=0)
    return out[:, out.std(axis=0) > 0]


def test_moments_are_those_of_the_rows_themselves() -> None:
    """Both tests of order, against a matrix of features."""
    release = nr.anonymize(people(), rules("decoys"))
    sets: Sets = published_sets(release)["job"]
    rng = np.random.default_rng(8)
    single = rng.integers(0, 5, 900)
    cases = [
        (moments(sets.statement, sets), matrix(sets.codes, sets.design.d)),
        (moments(secret("exact", 5), CodeCells(5, single)), matrix(single[:, None], 5)),
    ]
    for found, rows in cases:
        assert found is not None
        n = len(rows)
        covariance = rows.T @ rows / n
        total = float((rows[:-1] * rows[1:]).sum())
        z = (total + np.trace(covariance)) / np.sqrt(n * (covariance**2).sum())
        assert neighbours(found)[0] == pytest.approx(z, abs=1e-9)
        place = np.arange(n) - (n - 1) / 2
        assert found.slope == pytest.approx(place @ rows, abs=1e-6)
        assert found.covariance == pytest.approx(covariance, abs=1e-12)
        assert 0 <= trend(found)[1] <= 1
