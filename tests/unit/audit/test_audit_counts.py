"""Attacks on the counts of different rows come to the figures that they come to row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import noren as nr
from noren.audit import ATTACKS, Attacks, Case, applicable, attack, make_attack
from noren.audit.chart import steps
from noren.errors import QueryError, ReleaseError
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.statements import Cells, Statement, take
from tests.contracts.test_engines import CASES, table

ON_COUNTS = {"reidentification", "homogeneity", "similarity", "disclosure", "known-records", "absence"}
RELEASES = ["mondrian", "mondrian with suppression", "sweep", "anatomy", "decoys", "pram", "mixed", "shuffled records"]


class CountingStore(MemoryStore):
    """Cells that are counted elsewhere: nobody here sees a row."""

    def batches(self, columns: Sequence[Statement]) -> Any:
        raise AssertionError("a row was read")

    def count_combinations(self, columns: Sequence[Statement]) -> tuple[dict[str, Cells], np.ndarray]:
        whole = {column.name: self._cells[column.name] for column in columns}
        numbers = np.stack([cells.distinct()[1] for cells in whole.values()], axis=1)
        _, first, times = np.unique(numbers, axis=0, return_index=True, return_counts=True)
        return take(whole, first), times


class CountingEngine:
    """An engine that counts, on this machine."""

    def open_release(self, release: Release) -> Release:
        return Release(release.manifest, CountingStore(release.cells(release.columns)))


@pytest.fixture(scope="module")
def releases() -> dict[str, Release]:
    return {name: nr.anonymize(table(), CASES[name]) for name in RELEASES}


def figures(found: Attacks) -> list[dict[str, Any]]:
    """Everything an attack says, floats as near as sums of a few hundred are."""
    return [_near(one.to_dict()) for one in found]


def _near(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _near(value) for name, value in said.items()}
    if isinstance(said, list | tuple):
        return [_near(value) for value in said]
    return pytest.approx(said, rel=1e-9, abs=1e-12, nan_ok=True) if isinstance(said, float) else said


@pytest.mark.parametrize("case", RELEASES)
def test_every_attack_on_counts_finds_what_it_finds_row_by_row(case: str, releases: dict[str, Release]) -> None:
    release = releases[case]
    there: Any = CountingEngine()
    names = applicable(release, counts=True)
    assert set(names) == ON_COUNTS & set(applicable(release))
    assert names, "some attack applies to every one of these"
    for name in names:
        here, counted = attack(release, name), attack(release, name, engine=there)
        assert [one.to_dict() for one in here] == figures(counted)
        for mine, other in zip(here, counted, strict=True):
            for row, line in zip(mine.scenarios, other.scenarios, strict=True):
                assert line.frame.height <= row.frame.height
                if row.by == "row":
                    x = np.array(steps(row, mine.measure))
                    assert np.allclose(steps(line, mine.measure), x, atol=1e-6)
    assert {one.attack for one in attack(release, engine=there)} == set(names), "without a name all of these"


@pytest.mark.parametrize("case", ["mondrian", "anatomy"])
def test_who_is_missing_is_seen_in_counts(case: str, releases: dict[str, Release]) -> None:
    whole = releases[case]
    short = Release(whole.manifest.model_copy(update={"suppressed": 7}), whole.store)
    assert "absence" in applicable(short, counts=True)
    here, counted = attack(short, "absence"), attack(short, "absence", engine=CountingEngine())  # type: ignore[arg-type]
    assert [one.to_dict() for one in here] == figures(counted)


def test_options_reach_an_attack_on_counts(releases: dict[str, Release]) -> None:
    release, there = releases["mondrian"], CountingEngine()
    options: list[tuple[str, dict[str, Any]]] = [
        ("known-records", {"known": 1}),
        ("homogeneity", {"threshold": 0.3}),
        ("reidentification", {"fraction": 0.1}),
        ("reidentification", {"population": table().select(["age", "town"])}),
    ]
    for name, more in options:
        here = attack(release, name, **more)
        assert [one.to_dict() for one in here] == figures(attack(release, name, engine=there, **more))  # type: ignore[arg-type]


def test_the_lines_are_the_different_rows_with_their_numbers(releases: dict[str, Release]) -> None:
    release = releases["mondrian"]
    (found,) = attack(release, "homogeneity", engine=CountingEngine())  # type: ignore[arg-type]
    (scenario,) = found.scenarios
    different = release.frame().select("age", "town", "shade").unique().height
    assert scenario.frame.height == different < scenario.lines == release.records
    assert scenario.of is None


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - ON_COUNTS))
def test_what_counts_do_not_tell_is_refused_by_name_with_the_reason(name: str, releases: dict[str, Release]) -> None:
    kind = ATTACKS[name]
    assert kind.needs_rows, "the reason"
    with pytest.raises(QueryError, match=f"the {name} attack does not run on counts: {kind.needs_rows}") as refused:
        attack(releases["mondrian"], name, engine=CountingEngine())  # type: ignore[arg-type]
    assert "on one machine" in str(refused.value)


def test_the_registry_says_of_every_attack_whether_counts_suffice() -> None:
    assert {name for name, kind in ATTACKS.items() if kind.needs_rows is None} == ON_COUNTS


def test_the_original_is_looked_up_on_one_machine(releases: dict[str, Release]) -> None:
    with pytest.raises(QueryError, match=r"(?s)has no rows.*on one machine"):
        attack(releases["mondrian"], original=table(), policy=CASES["mondrian"], engine=CountingEngine())  # type: ignore[arg-type]


def test_counts_that_miss_rows_are_refused(releases: dict[str, Release]) -> None:
    whole = releases["mondrian"]
    fewer = take(whole.cells(whole.columns), slice(0, whole.records - 1))
    case = Case(Release(whole.manifest, CountingStore(fewer)), counts=True)
    with pytest.raises(ReleaseError, match="the data hold 382 rows, the manifest says 383"):
        make_attack("homogeneity", {}).run(case)
