"""Anatomy and Rating where people have several records: whole people to a group, counted by an oracle."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.engines import Group, Records
from noren.errors import RequirementNotMet
from noren.methods.anatomy import Anatomy
from noren.models.distinct_l_diversity import DistinctLDiversity
from noren.models.frequency_l_diversity import FrequencyLDiversity
from noren.workflow.anonymize import run
from tests.oracles import people as oracle
from tests.oracles.grouping import table_of


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def records(ills: list[list[int]]) -> Records:
    """One person a list of illnesses, a record each."""
    whose = np.repeat(np.arange(len(ills)), [len(one) for one in ills])
    flat = [ill for one in ills for ill in one]
    table = table_of({"age": range(len(flat))}, {"ill": flat})
    return Records(table.n, table.columns, table.codes, people=whose)


def groups(table: Records, *models: Any, suppression: float = 0.0) -> tuple[dict[Any, oracle.Rows], np.ndarray]:
    plan = Anatomy(suppression=suppression).recode(table, models, order)
    found = plan.treatments["ill"]
    assert isinstance(found, Group)
    assert table.people is not None
    keep = np.ones(table.n, bool) if plan.keep is None else plan.keep
    kept = table.codes["ill"][keep]
    return oracle.gathered(found.data[keep].tolist(), table.people[keep].tolist(), kept.tolist()), keep


def crowd(n: int, values: int, seed: int, rows: int = 4) -> list[list[int]]:
    """People with an illness of their own in most records, and any in the others; common ones more often."""
    rng = np.random.default_rng(seed)
    weights = np.arange(values, 0, -1) / np.arange(values, 0, -1).sum()
    own, many = rng.choice(values, n, p=weights), rng.integers(1, rows + 1, n)
    return [
        [int(a) if rng.random() < 0.6 else int(rng.integers(values)) for _ in range(k)]
        for a, k in zip(own, many, strict=True)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_no_value_is_had_by_more_than_a_share_of_a_groups_people(seed: int) -> None:
    table = records(crowd(400, 12, seed))
    found, _ = groups(table, FrequencyLDiversity(on="ill", l=3))
    assert sum(map(len, found.values())) == 400
    for rows in found.values():
        assert max(oracle.holders(rows, 12)) <= Fraction(1, 3)
    assert len(found) > 400 / 3 / 3


@pytest.mark.parametrize("seed", range(3))
def test_others_values_are_enough_where_only_distinct_ones_are_asked(seed: int) -> None:
    """Most people share one illness: no frequency could be met, and l different values can."""
    ills = [[0, *one] if i % 4 else one for i, one in enumerate(crowd(300, 8, seed))]
    found, _ = groups(records(ills), DistinctLDiversity(on="ill", l=3))
    assert all(oracle.distinct(rows) >= 3 for rows in found.values())
    assert len(found) > 10


def test_people_that_fit_exactly_find_a_group() -> None:
    """A third of the people have the commonest illness, as many as may be; each has it several times."""
    ills = [[0, 0]] * 20 + [[1 + i % 5, 1 + i % 5] for i in range(40)]
    found, _ = groups(records(ills), FrequencyLDiversity(on="ill", l=3))
    assert all(max(oracle.holders(rows, 6)) <= Fraction(1, 3) for rows in found.values())


def test_groups_do_not_show_who_has_how_many_rows() -> None:
    """Only the commonest illness is had by people with three rows: whoever counts a person's rows would know it."""
    ills = [[0, 0, 0]] * 20 + [[1 + i % 5, 1 + i % 5] for i in range(40)]
    with pytest.raises(RequirementNotMet, match="need people with equal numbers of rows"):
        groups(records(ills), FrequencyLDiversity(on="ill", l=3))


def test_people_are_dropped_whole_or_refused() -> None:
    ills = [[0, 0]] * 12 + [[1 + i % 5, 1 + i % 5] for i in range(20)]
    table = records(ills)
    with pytest.raises(
        RequirementNotMet, match=r"l = 3 cannot be reached for 'ill': too many people have the same value"
    ) as error:
        groups(table, FrequencyLDiversity(on="ill", l=3))
    assert error.value.hint == "The largest l is 2 without dropping people."
    found, keep = groups(table, FrequencyLDiversity(on="ill", l=3), suppression=0.2)
    assert (~keep).sum() == 4
    assert sum(map(len, found.values())) == 30
    assert table.people is not None
    assert not set(table.people[keep]) & set(table.people[~keep])


@pytest.mark.parametrize("method", ["anatomy", "rating"])
@pytest.mark.parametrize("model", ["frequency-l-diversity", "distinct-l-diversity"])
def test_visits_are_published_in_groups_of_patients(method: str, model: str, tmp_path: Any) -> None:
    ills = crowd(200, 10, 7)
    whose = [i for i, one in enumerate(ills) for _ in one]
    visits = pl.DataFrame(
        {
            "patient": whose,
            "age": [20 + i % 50 for i in whose],
            "ill": [f"i{ill}" for one in ills for ill in one],
        }
    )
    policy = nr.Policy(
        attributes={"patient": "identifier", "age": "quasi-identifier", "ill": "sensitive"},
        require=[{"model": model, "on": "ill", "l": 3}],
        method=method,
        people={"key": "patient"},
    )
    release = run(visits, policy, to=tmp_path / "release").release
    (verdict,) = release.verdicts
    assert verdict.holds
    assert verdict.basis == "the original"
    assert not release.manifest.rows_are_people
    opened = nr.open_release(tmp_path / "release")
    assert opened.records == len(whose)
    rows = nr.measure(opened).to_dict()
    assert (rows["counted"], "rows were counted" in str(rows)) == ("rows", True)


def test_a_person_in_two_groups_is_no_release() -> None:
    from noren.models.classes import PeopleGroups, PeopleValues
    from noren.statements import CodeCells, GroupStatement, GroupTable
    from noren.statements.batch import PERSON

    table = records([[0], [1], [0, 1], [2]])
    column = table.columns["ill"]
    assert table.people is not None
    held = PeopleValues.of(table.people, table.codes["ill"])
    for data, good in (([0, 0, 1, 1, 1], True), ([0, 0, 0, 1, 1], False)):
        cells = np.array(data)
        side = GroupTable.from_codes(2, column.d, cells, table.codes["ill"])
        judged = PeopleGroups(GroupStatement(column, 2, 1, side), held)
        judged.observe({"ill": CodeCells(2, cells), PERSON: CodeCells(5, table.people)})
        assert (judged.table().stray == 0) is good
        assert len(judged.table()) == (2 if good else 0)
