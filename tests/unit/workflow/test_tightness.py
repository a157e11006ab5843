"""Classes that say which values they show: the original has these, or the auditor is told."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.workflow.truth import tight_columns, tight_verdicts


def test_values_that_the_classes_show_are_in_the_original_or_it_is_said() -> None:
    ages = [20, 23, 23, 26, 40, 41, 44, 49] * 5
    table = pl.DataFrame({"age": ages, "ill": ["flu", "cold"] * 20})
    rules = nr.Policy(
        mechanism="ignored",
        attributes={"age": "quasi-identifier", "ill": "sensitive"},
        require=[nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="ill", l=2)],
        method="mondrian",
        dependence={"most": 1.0},
    )
    release = nr.anonymize(table, rules)
    assert tight_columns(release) == ["age"]
    domain = release.column("age").domain
    truth = np.bincount(domain.find([str(age) for age in ages]), minlength=len(domain))
    (found,) = tight_verdicts(release, {"age": truth})
    assert (found.model, found.holds, found.achieved, found.breaches) == ("tight-classes", True, 1.0, 0)
    assert found.statement == "every value occurs as often as its classes state"
    (found,) = tight_verdicts(release, {"age": np.zeros_like(truth)})
    assert found.holds is False
    assert found.breaches > 0
    assert found.achieved == pytest.approx(1 - found.breaches / len(ages))
    assert found.statement == "some values occur in classes more often than in the original"


@pytest.mark.parametrize(
    ("counts", "short"), [([2, 2, 2, 2], 0), ([1, 3, 2, 2], 1), ([2, 2, 3, 1], 1), ([3, 1, 1, 3], 0), ([0, 4, 4, 0], 4)]
)
def test_every_class_that_ends_at_a_value_has_somebody_of_its_own(counts: list[int], short: int) -> None:
    """Those of Ulm and those of Hof are both from 20 to 23: two people have each end."""
    table = pl.DataFrame({"age": [20, 21, 22, 23] * 2, "town": ["Ulm"] * 4 + ["Hof"] * 4, "ill": ["flu", "cold"] * 4})
    rules = nr.Policy(
        attributes={"age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"},
        require=[nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="ill", l=2)],
        method={"name": "mondrian", "weights": {"town": 100.0}, "blind": False},
        dependence={"most": 1.0},
        mechanism="ignored",  # a table of few people
    )
    release = nr.anonymize(table, rules)
    assert set(release.frame()["age"]) == {"[20, 23]"}
    found, _ = tight_verdicts(release, {"age": np.array(counts), "town": np.array([4, 4])})
    assert (found.column, found.holds, found.breaches) == ("age", short == 0, short)
