"""Anatomy and Rating: groups of different values, whose numbers say nothing."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

import numpy as np
import pytest

from noren.engines import Group, Plan, Records
from noren.errors import PolicyError, RequirementNotMet
from noren.methods.anatomy import Anatomy
from noren.methods.rating import Rating
from noren.models.base import Model
from noren.models.distinct_l_diversity import DistinctLDiversity
from noren.models.frequency_l_diversity import FrequencyLDiversity
from noren.models.k_anonymity import KAnonymity
from noren.models.le_diversity import LEDiversity
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from tests.oracles.grouping import table_of

ILLS = Hierarchy.from_tree({"lung": ["flu", "cough", "哮喘"], "heart": ["angina"], "skin": ["acne", "rash"]})


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def column(recoding: Plan, name: str = "illness") -> Group:
    found = recoding.treatments[name]
    assert isinstance(found, Group)
    return found


def patients(illness: list[int]) -> Records:
    return table_of({"age": range(len(illness))}, {"illness": illness}, {"illness": ILLS})


def test_groups_hold_different_values_and_the_rest_stays() -> None:
    table = patients([0, 1, 2, 3, 4, 5, 0])
    recoding = Anatomy().recode(table, [FrequencyLDiversity(on="illness", l=3)], order)
    found = column(recoding)
    assert list(recoding.treatments) == ["illness"]
    assert found.table.groups == 2
    assert sorted(found.table.sizes.tolist()) == [3, 4]
    assert (found.table.count == 1).all()
    assert found.table.totals.tolist() == [2, 1, 1, 1, 1, 1]


def test_subtrees_are_the_buckets_of_le_diversity() -> None:
    table = patients([0, 1, 3, 3, 4, 5] * 5)
    recoding = Anatomy().recode(
        table, [LEDiversity(on="illness", l=3, e=1), DistinctLDiversity(on="illness", l=2)], order
    )
    found = column(recoding).table
    subtree = ILLS.groups(ILLS.height - 1)[1][found.value]
    for g in range(found.groups):
        assert sorted(subtree[found.group == g].tolist()) == [0, 1, 2]
    with pytest.raises(PolicyError, match="e = 5 needs 5 levels"):
        Anatomy().recode(table, [LEDiversity(on="illness", l=2, e=5)], order)


def test_too_common_values_are_dropped_or_refused() -> None:
    table = patients([0] * 6 + [1, 2, 3, 4])
    with pytest.raises(RequirementNotMet, match=r"l = 2 cannot be reached for 'illness'.*\n.*No l of 2 or more"):
        Anatomy().recode(table, [FrequencyLDiversity(on="illness", l=2)], order)
    with pytest.raises(RequirementNotMet, match="at most 1 records dropped"):
        Anatomy(suppression=0.1).recode(table, [FrequencyLDiversity(on="illness", l=2)], order)
    recoding = Anatomy(suppression=0.2).recode(table, [FrequencyLDiversity(on="illness", l=2)], order)
    assert recoding.keep is not None
    assert table.codes["illness"][~recoding.keep].tolist() == [0, 0]
    assert column(recoding).table.totals.tolist() == [4, 1, 1, 1, 1, 0]


def test_distinct_diversity_lets_a_group_repeat_a_value() -> None:
    table = patients([0] * 8 + [1, 2, 3])
    recoding = Anatomy().recode(table, [DistinctLDiversity(on="illness", l=2)], order)
    found = column(recoding).table
    assert recoding.keep is None
    assert found.totals.sum() == 11
    assert np.bincount(found.group).min() >= 2
    assert found.sizes.max() - found.sizes.min() <= 1, "the surplus is spread evenly"
    with pytest.raises(RequirementNotMet, match="largest l is 4"):
        Anatomy().recode(table, [DistinctLDiversity(on="illness", l=5)], order)
    with pytest.raises(RequirementNotMet, match="No l of 2 or more"):
        Anatomy().recode(patients([3] * 5), [DistinctLDiversity(on="illness", l=2)], order)


def test_numbers_of_groups_come_from_the_random_order() -> None:
    """With another order for the numbers alone the groups are the same and their numbers permuted."""
    table = patients([0, 1, 2, 3, 4, 5] * 10)
    required = [FrequencyLDiversity(on="illness", l=3)]
    calls: list[int] = []

    def counted(n: int) -> np.ndarray:
        calls.append(n)
        return order(n)

    first = column(Anatomy().recode(table, required, counted))
    groups = first.table.groups
    assert calls.count(groups) >= 1

    def other(n: int) -> np.ndarray:
        other.calls += 1  # type: ignore[attr-defined]
        return order(n)[::-1] if other.calls == len(calls) else order(n)  # type: ignore[attr-defined]

    other.calls = 0  # type: ignore[attr-defined]
    second = column(Anatomy().recode(table, required, other))
    assert (first.data != second.data).any()
    pairs = set(zip(first.data.tolist(), second.data.tolist(), strict=True))
    assert len(pairs) == groups
    assert sorted(a for a, _ in pairs) == sorted(b for _, b in pairs) == list(range(groups))


def test_numbers_do_not_follow_the_input() -> None:
    """Rows in the order of the input: a group's number has no correlation with the places of its members."""
    table = patients(list(np.random.default_rng(0).integers(0, 6, 6000)))
    found = column(Anatomy().recode(table, [FrequencyLDiversity(on="illness", l=2)], order))
    correlation = np.corrcoef(found.data, np.arange(table.n))[0, 1]
    assert abs(correlation) < 7 / np.sqrt(table.n)


def test_rating_groups_every_column_by_its_own_l() -> None:
    rng = np.random.default_rng(5)
    codes = {"illness": rng.integers(0, 6, 300), "income": rng.integers(0, 9, 300), "age": rng.integers(0, 30, 300)}
    table = table_of({"town": rng.integers(0, 4, 300)}, codes, {"illness": ILLS}, role=Role.SENSITIVE_QUASI_IDENTIFIER)
    required: list[Model] = [
        FrequencyLDiversity(on=("illness", "income"), l=2),
        DistinctLDiversity(on="income", l=4),
        FrequencyLDiversity(on="age", l=10),
    ]
    recoding = Rating().recode(table, required, order)
    assert set(recoding.treatments) == set(codes)
    for name, l in (("illness", 2), ("income", 4), ("age", 10)):
        found = column(recoding, name)
        assert found.table.groups == 300 // l
        assert (found.table.count == 1).all()
        assert (found.table.sizes >= l).all()
        listed = set(zip(found.table.group.tolist(), found.table.value.tolist(), strict=True))
        assert listed == set(zip(found.data.tolist(), codes[name].tolist(), strict=True))
    pairs = len(set(zip(column(recoding, "illness").data.tolist(), column(recoding, "age").data.tolist(), strict=True)))
    assert pairs > 250, "the groups of one column say nothing about another's"


def test_rating_drops_records_for_all_columns_at_once() -> None:
    codes = {"illness": [0] * 6 + [1, 2, 3, 4], "income": [0, 1, 2, 3, 4, 5, 0, 0, 0, 0]}
    table = table_of({"town": [0] * 10}, codes)
    required = [FrequencyLDiversity(on=("illness", "income"), l=2)]
    recoding = Rating(suppression=0.5).recode(table, required, order)
    assert recoding.keep is not None
    for name in codes:
        found = column(recoding, name).table
        assert found.totals.sum() == recoding.keep.sum()
        assert (found.count == 1).all()
    with pytest.raises(RequirementNotMet):
        Rating(suppression=0.1).recode(table, required, order)


def test_problems() -> None:
    roles = {"age": Role.QUASI_IDENTIFIER, "illness": Role.SENSITIVE}
    both = {**roles, "age": Role.SENSITIVE_QUASI_IDENTIFIER}
    wanted = FrequencyLDiversity(on="illness", l=2)
    assert Anatomy().problems(roles, [wanted]) == []
    assert Rating().problems(both, [wanted, FrequencyLDiversity(on="age", l=2)]) == []
    assert [p.where for p in Anatomy().problems(roles, [wanted, KAnonymity(k=2)])] == ["require[2].model"]
    assert (
        "one sensitive column" in Anatomy().problems(roles, [FrequencyLDiversity(on=("illness", "x"), l=2)])[0].message
    )
    assert [p.where for p in Anatomy().problems(both, [wanted])] == ["attributes.age.role"]
    assert [p.where for p in Rating().problems(roles, [KAnonymity(k=2)])] == ["require[1].model", "require"]
    assert "quasi-sensitive" in Rating().problems({"notes": Role.QUASI_SENSITIVE, **roles}, [wanted])[0].message
