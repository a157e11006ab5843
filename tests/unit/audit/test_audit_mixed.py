"""General quasi-identifiers beside decoy sets are one release, and are attacked as one; verbs take paths or objects."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import ATTACKS, Attacks, attack, make_attack, people, reasons
from noren.audit.base import Case
from noren.audit.people import known_people
from noren.audit.targets import place_people

N = 1_500
ILLS = ["flu", "cold", "ulcer", "gout", "none"]
POLICY = """
[attributes]
number = { role = "identifier" }
age = { role = "quasi-identifier" }
town = { role = "quasi-identifier" }
note = { role = "plain" }
ill = { role = "sensitive" }

[[require]]
model = "k-anonymity"
k = 5

[[require]]
model = "frequency-l-diversity"
on = "ill"
l = 3

[[method]]
name = "mondrian"

[[method]]
name = "decoys"
on = ["ill"]
"""


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    """The age decides the illness six times out of ten; town and note have nothing to do with it."""
    rng = np.random.default_rng(5)
    age = rng.integers(20, 80, N)
    ill = np.where(rng.random(N) < 0.6, age // 12 % 5, rng.integers(0, 5, N))
    return pl.DataFrame(
        {
            "number": np.arange(N),
            "age": age,
            "town": rng.choice(list("nesw"), N),
            "note": rng.choice(["x", "y"], N),
            "ill": [ILLS[code] for code in ill],
        }
    )


@pytest.fixture(scope="module")
def policy(tmp_path_factory) -> nr.Policy:
    path = tmp_path_factory.mktemp("policy") / "policy.toml"
    path.write_text(POLICY)
    return nr.Policy.load(path)


@pytest.fixture(scope="module")
def release(table, policy) -> nr.Release:
    made = nr.anonymize(table, policy)
    assert made.column("age").nodes is not None
    assert made.column("ill").design is not None
    return made


def test_what_applies(release) -> None:
    found = {name for name, reason in reasons(release).items() if reason is None}
    assert found == {"reidentification", "homogeneity", "disclosure", "bayes", "intersection", "predictable"}
    assert "no requirement on a sensitive column influences its classes" in str(reasons(release)["minimality"])


def test_people_are_found_by_general_values(table, policy, release) -> None:
    options = {"original": table, "policy": policy}
    (risk,) = attack(release, "reidentification", **options)
    assert risk.facts["quasi_identifiers"] == ["age", "town"]
    assert risk.scenario("release").summary["max_risk"] <= 1 / 5
    for name in ("homogeneity", "disclosure"):
        (found,) = attack(release, name, **options)
        inside = found.scenario("release")
        assert inside.frame["candidates"].min() >= 5
        assert inside.summary["without_group"] == 0
        assert inside.summary["mean_belief"] < found.scenario("raw").summary["mean_belief"]


def test_all_published_columns_at_once(table, policy, release) -> None:
    (found,) = attack(release, "bayes", original=table, policy=policy)
    overall, everything = found.scenario("overall").summary, found.scenario("all").summary
    told = found.facts["all_columns"]
    assert told["columns"] == ["age", "town", "note"]
    assert told["right"] == everything["right"]
    assert everything["right"] > overall["right"] + 0.15
    assert everything["right"] > everything["right_before"] > overall["right_before"] + 0.15
    # who knows the exact age is right in seven of ten cases at best, before any set; sets add to that
    assert everything["right"] < 0.9
    low, high = found.scenario("all").bounds["right"]
    assert low < everything["right"] < high
    assert any("reads all published columns" in note for note in found.notes)
    (outside,) = attack(release, "bayes")
    assert not outside.holder_only
    assert "right" not in outside.facts["all_columns"]
    names = [one.name for one in outside.scenarios]
    assert names[:2] == ["all-rows", "overall-rows"]
    assert outside.scenarios[0].summary["mean_belief"] > outside.scenarios[1].summary["mean_belief"] + 0.1


def test_whoever_stands_alone_is_recognised(table, policy, release) -> None:
    found = place_people(release, known_people(Case(release, policy, table)))
    assert found.who.tolist() == list(range(N))
    assert found.lost == 0
    frame = release.frame().with_columns(pl.col("age").cast(pl.String))
    alike = frame.group_by("age", "town", "note").len()["len"].to_numpy()
    assert found.recognised.sum() <= (alike == 1).sum()


def test_paths_or_objects(table, policy, release, tmp_path) -> None:
    release.save(tmp_path / "release")
    table.write_csv(tmp_path / "table.csv")
    (tmp_path / "policy.toml").write_text(POLICY)
    by_path = attack(
        tmp_path / "release", "homogeneity", original=tmp_path / "table.csv", policy=tmp_path / "policy.toml"
    )
    assert isinstance(by_path, Attacks)
    by_text = attack(str(tmp_path / "release"), "homogeneity", original=str(tmp_path / "table.csv"), policy=policy)
    assert by_path == by_text == attack(release, "homogeneity", original=table, policy=policy)


def test_the_original_is_prepared_once(table, policy, release, monkeypatch) -> None:
    times = []
    real = people.prepare

    def counted(*given, **more):
        times.append(1)
        return real(*given, **more)

    monkeypatch.setattr(people, "prepare", counted)
    case = Case(release, policy, table)
    for name in ("reidentification", "homogeneity", "disclosure", "bayes", "intersection"):
        assert name in ATTACKS
        assert make_attack(name, {}).run(case)
    assert times == [1]


def test_people_who_were_left_out_are_not_attacked(table, policy, release) -> None:
    left = pl.concat(
        [table, table.tail(1).with_columns(age=pl.lit(99, pl.Int64), note=pl.lit("z"), number=pl.lit(N, pl.Int64))]
    )
    without = nr.Release(release.manifest.model_copy(update={"suppressed": 1}), release.store)
    (found,) = attack(without, "bayes", original=left, policy=policy)
    assert found.scenario("all").frame.height == N
    assert any("1 of the people" in note for note in found.notes)
