"""A small hospital over two quarters, in the manner of Xiao and Tao (SIGMOD 2007); table and values are our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.workflow.anonymize import run

ILLS = ["dyspepsia", "bronchitis", "flu", "gastritis", "pneumonia"]
FIRST = [
    ("Ann", 21, 12, "dyspepsia"), ("Ben", 22, 14, "bronchitis"), ("Cleo", 24, 18, "flu"), ("Dan", 23, 25, "gastritis"),
    ("Eva", 41, 20, "flu"), ("Fay", 36, 27, "gastritis"), ("Gus", 37, 33, "dyspepsia"), ("Hal", 40, 35, "flu"),
    ("Ida", 43, 26, "gastritis"), ("Jon", 52, 33, "dyspepsia"), ("Kim", 56, 34, "gastritis"),
]  # fmt: skip
GONE = {"Ben"}
CAME = [("Lea", 54, 31, "pneumonia"), ("Max", 60, 44, "gastritis"), ("Nia", 65, 36, "flu")]
"""Ben alone had bronchitis, and nobody who came has it: his place beside others is a counterfeit's."""


def table(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["name", "age", "zip", "ill"], orient="row")


def policy(**more: Any) -> nr.Policy:
    return nr.Policy(
        mechanism="ignored",
        attributes={
            "name": "identifier",
            "age": "quasi-identifier",
            "zip": "quasi-identifier",
            "ill": {"role": "sensitive", "values": ILLS},
        },
        require=[{"model": "m-invariance", "on": "ill", "m": 2}],
        method={"name": "m-invariance", "counterfeits": more.pop("counterfeits", 0.5)},
        randomness={"record_key": "name", **more},
    )


@pytest.fixture
def key(tmp_path) -> Path:
    nr.Secret.create(tmp_path / "key")
    return tmp_path / "key"


def signatures(outcome: Any, names: list[str]) -> dict[str, set[str]]:
    group = outcome.facts.plan.of("ill").data
    held = outcome.release.column("ill").table
    return {name: {ILLS[v] for v in held.value[held.group == g]} for name, g in zip(names, group, strict=True)}


def test_the_second_quarter(key, tmp_path):
    first = run(table(FIRST), policy(), secret=key, to=tmp_path / "first")
    before = signatures(first, [row[0] for row in FIRST])
    assert first.release.manifest.counterfeits == 0
    later = [row for row in FIRST if row[0] not in GONE] + CAME
    second = run(table(later), policy(), secret=key, to=tmp_path / "second")
    after = signatures(second, [row[0] for row in later])
    assert {name: values for name, values in after.items() if name in before} == {
        name: values for name, values in before.items() if name in after
    }
    release = nr.open_release(tmp_path / "second")
    statement = release.column("ill")
    beside = [name for name in after if "bronchitis" in after[name]]
    assert beside, "whoever stood beside Ben still does"
    assert release.manifest.counterfeits >= 1
    assert sum(statement.counterfeits.values()) == release.manifest.counterfeits
    assert (statement.table.totals == 1).sum() >= 1
    assert release.records == len(later)
    assert nr.verify(release, original=table(later), policy=policy()).hold
    assert "counterfeits" in (tmp_path / "second" / "README.md").read_text()
    assert "counterfeits" in release.estimate("ill").assumes
    (found,) = nr.attack(
        tmp_path / "first", "intersection", original=table(FIRST), policy=policy(), other=str(tmp_path / "second")
    )
    assert found.facts["m"] == 2
    assert found.facts["exposed"] == 0


def test_too_many_counterfeits_are_refused_with_their_number(key):
    nr.anonymize(table(FIRST), policy(), secret=key)
    one = [row for row in FIRST if row[0] == "Ben"]
    with pytest.raises(nr.errors.RequirementNotMet, match="groups need at least 2 records"):
        nr.anonymize(table(one), policy(counterfeits=10), secret=key)
    two = [row for row in FIRST if row[0] in ("Ben", "Ida")]
    with pytest.raises(nr.errors.RequirementNotMet, match="counterfeits would be needed for 2 records") as caught:
        nr.anonymize(table(two), policy(counterfeits=0), secret=key)
    assert "Permit more" in str(caught.value.hint)


def test_a_person_whose_secret_is_another_one_is_refused_with_the_number(key):
    nr.anonymize(table(FIRST), policy(), secret=key)
    changed = [(*row[:3], "pneumonia") if row[0] in ("Ann", "Hal") else row for row in FIRST]
    with pytest.raises(nr.errors.RequirementNotMet, match=r"^2 people now have a value of 'ill'") as caught:
        nr.anonymize(table(changed), policy(), secret=key)
    assert "new key" in str(caught.value.hint)


def test_what_was_published_in_other_classes_is_kept_too(key):
    """First Mondrian, then m-invariance: the values of the first classes are the signatures."""
    mondrian = nr.Policy(
        mechanism="ignored",
        attributes=policy().attributes,
        require=[{"model": "distinct-l-diversity", "on": "ill", "l": 3}],
        method={"name": "mondrian", "blind": False},
        randomness={"record_key": "name"},
    )
    nr.anonymize(table(FIRST), mondrian, secret=key)
    release = nr.anonymize(table(FIRST), policy(counterfeits=3), secret=key)
    held = release.column("ill").table
    assert (held.count == 1).all()
    assert held.sizes.min() >= 3


def test_without_a_register_the_first_release_says_so():
    rules = nr.Policy(
        mechanism="ignored", attributes=policy().attributes, require=policy().require, method=policy().methods
    )
    outcome = run(table(FIRST), rules)
    assert any("no register" in note for note in outcome.facts.notes)
