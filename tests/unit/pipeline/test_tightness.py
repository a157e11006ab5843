"""Classes that say which values they show: the original has these, or the auditor is told."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.pipeline.tightness import tight_columns, tight_verdicts


def test_values_that_the_classes_show_are_in_the_original_or_it_is_said() -> None:
    ages = [20, 23, 23, 26, 40, 41, 44, 49] * 5
    table = pl.DataFrame({"age": ages, "ill": ["flu", "cold"] * 20})
    rules = nr.Policy(
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
    assert found.statement == "every value occurs as often as the classes that show it say"
    (found,) = tight_verdicts(release, {"age": np.zeros_like(truth)})
    assert found.holds is False
    assert found.breaches > 0
    assert found.achieved == pytest.approx(1 - found.breaches / len(ages))
    assert found.statement == "classes show values that the original does not have often enough"
