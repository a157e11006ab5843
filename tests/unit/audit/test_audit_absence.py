"""The absence attack, by hand: what the original has more than the release are the secrets of the missing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import noren as nr
from noren.audit import attack, reasons
from noren.errors import QueryError
from noren.release.manifest import UsedMethod, VerdictEntry

THERE = ["Married"] * 4 + ["Single"] * 4 + ["Divorced"] * 4


def table(*missing: str) -> pa.Table:
    status = [*THERE, *missing]
    return pa.table({"age": [30 + i % 2 for i in range(len(status))], "status": status})


def policy(method: str = "mondrian", l: int = 3) -> nr.Policy:  # noqa: E741
    return nr.Policy(
        attributes={"age": "quasi-identifier", "status": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on="status", l=l)],
        method={"name": method},
        dependence={"most": 1.0},
    )


def release(count: int, method: str = "mondrian", **more: Any) -> nr.Release:
    """A release of those who are there, which says that others were left out."""
    made = nr.anonymize(table(), policy(method))
    return nr.Release(made.manifest.model_copy(update={"suppressed": count, **more}), made.store)


@pytest.mark.parametrize("method", ["mondrian", "anatomy"])
def test_all_who_vanished_are_married(method):
    (found,) = attack(release(3, method), "absence", original=table("Married", "Married", "Married"), policy=policy())
    (scenario,) = found.scenarios
    assert scenario.summary == {"certain": 1.0, "mean_belief": 1.0, "max_belief": 1.0, "right": 1.0}
    assert found.baseline["mean_belief"] == pytest.approx(7 / 15)
    assert found.baseline["right"] == 1.0
    assert any("3 suppressed people are certain" in note for note in found.notes)
    assert found.holder_only
    assert scenario.frame["value"].to_list() == ["Married"] * 3


def test_the_missing_are_as_mixed_as_a_class():
    (found,) = attack(release(3), "absence", original=table("Married", "Single", "Divorced"), policy=policy())
    assert found.scenarios[0].summary["max_belief"] == pytest.approx(1 / 3)
    assert found.scenarios[0].summary["certain"] == 0
    assert not found.notes


def test_a_value_that_nobody_published_has_is_seen_too():
    (found,) = attack(release(2), "absence", original=table("Widowed", "Widowed"), policy=policy())
    assert found.scenarios[0].summary["certain"] == 1.0
    assert found.scenarios[0].frame["value"].to_list() == ["Widowed", "Widowed"]


def test_an_outsider_knows_the_rule():
    """Anatomy as it was left out only people of secrets cut down to the most that may be: three are as common here."""
    lone = release(2, "anatomy", methods=(UsedMethod(name="anatomy"),))
    (found,) = attack(lone, "absence")
    assert found.scenarios[0].summary["mean_belief"] == pytest.approx(1 / 3)
    assert not found.holder_only
    judged = VerdictEntry(
        model="left-out", column="all columns", required=1, achieved=None, holds=True, basis="the original"
    )
    (found,) = attack(release(2, "anatomy", verdicts=(judged,)), "absence")
    assert found.facts["judged"] is True


def test_where_it_does_not_apply():
    assert reasons(release(0))["absence"] == "nobody was suppressed"
    drawn = nr.anonymize(table(), policy("decoys", 2))
    hidden = nr.Release(drawn.manifest.model_copy(update={"suppressed": 2}), drawn.store)
    assert "cannot be counted" in str(reasons(hidden)["absence"])
    with pytest.raises(QueryError, match="nobody was suppressed"):
        attack(release(0), "absence")
