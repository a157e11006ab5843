"""What left-out terms cost and leave to believe, where several columns have knowledge tables of their own."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.engines import Omit, Plan, Records
from noren.metrics.general import GeneralTable, view_of
from noren.metrics.term_losses import belief_change
from noren.models.base import Overall
from noren.workflow.losses import beliefs_before, losses_of, published_groups, term_losses
from noren.workflow.prepare import prepare

SIGNS = nr.Knowledge.from_pairs([("flu", "cough"), ("flu", "ache"), ("pox", "rash"), ("pox", "cough")])
DRUGS = nr.Knowledge.from_pairs([("gout", "tea"), ("burn", "tea"), ("burn", "balm")], priors={"gout": 0.5, "burn": 0.5})


def close(on: str, unlinked: str) -> nr.models.QSCloseness:
    return nr.models.QSCloseness(on=on, t=0.9, unlinked=unlinked)


@cache
def records() -> Records:
    """Four people of two towns, one and three; the last knows a drug that nobody links to anything."""
    signs = [["cough", "rash"], ["ache"], ["cough"], ["rash", "ache"]]
    drugs = [["tea"], ["balm"], ["tea", "balm"], ["salt"]]
    kind = pa.list_(pa.string())
    table = pa.table({"town": list("uhhh"), "signs": pa.array(signs, kind), "drugs": pa.array(drugs, kind)})
    attributes: dict[str, Any] = {
        "town": "quasi-identifier",
        "signs": {"role": "quasi-sensitive", "knowledge": SIGNS},
        "drugs": {"role": "quasi-sensitive", "knowledge": DRUGS, "unknown": "keep"},
    }
    asked = [close("signs", "ignore"), close("drugs", "prior")]
    policy = nr.Policy(attributes=attributes, require=asked, method={"name": "suppress", "k": 1})
    return prepare(table, policy).records


PRIORS = {name: Overall(np.array([0.5, 0.5]), "the original") for name in ("signs", "drugs")}


def plan() -> Plan:
    """The first loses one of two signs, the third one of two drugs."""
    terms = records().terms
    signs, drugs = terms["signs"].cells, terms["drugs"].cells
    less_signs = signs.keep(np.arange(len(signs.data)) != 0)
    less_drugs = drugs.keep(np.arange(len(drugs.data)) != 2)
    return Plan({"signs": Omit(less_signs), "drugs": Omit(less_drugs)}, records=records())


def view(of: Plan) -> GeneralTable:
    return view_of(records(), of)


def test_costs_are_means_over_the_knowledge_tables_and_shares_over_all_terms() -> None:
    """Of signs 1/2 of 3/2 is lost in the town of one and nothing in that of three; of drugs 1/2 of 7/2 in the other."""
    whole, made = plan(), view(plan())
    found = term_losses(records(), whole, PRIORS, made)
    assert found["term_cost_loss"] == pytest.approx((1 / 3 / 2 + 1 / 7 / 2) / 2)
    assert found["term_cost_of_records_loss"] == pytest.approx((1 / 3 / 4 + 3 / 7 / 4) / 2)
    assert found["term_share_loss"] == pytest.approx(2 / 11)


def test_beliefs_about_records_without_links_are_as_the_requirement_of_their_column_says() -> None:
    asked = [close("signs", "ignore"), close("drugs", "prior")]
    nothing = Plan({}, records=records())
    made = view(nothing)
    group = published_groups(made)
    for requirements, said in ((asked, "prior"), (asked[::-1], "prior"), (asked[:1], "ignore"), ([], "ignore")):
        signs = belief_change(records().terms["signs"].cells, group, SIGNS, np.array([0.5, 0.5]), "ignore")
        drugs = belief_change(records().terms["drugs"].cells, group, DRUGS, np.array([0.5, 0.5]), said)  # type: ignore[arg-type]
        found = term_losses(records(), nothing, PRIORS, made, requirements)
        assert found["belief_rise_max_loss"] == pytest.approx(max(signs.highest, drugs.highest))
        mean = max(signs.mean_over_records, drugs.mean_over_records)
        assert found["belief_rise_mean_loss"] == pytest.approx(mean)
        assert beliefs_before(records(), PRIORS, made, requirements)["belief_rise_mean_loss"] == pytest.approx(mean)


def test_a_table_without_terms_has_no_such_losses() -> None:
    table = pa.table({"town": ["u", "h"] * 4, "ill": ["a", "b"] * 4})
    policy = nr.Policy(
        attributes={"town": "quasi-identifier", "ill": "sensitive"},
        require=[nr.models.DistinctLDiversity(on="ill", l=2)],
        method="mondrian",
    )
    plain = prepare(table, policy).records
    nothing = Plan({}, records=plain)
    made = view_of(plain, nothing)
    assert term_losses(plain, nothing, {}, made) == beliefs_before(plain, {}, made) == {}
    found = losses_of(made)
    assert (found["classes"], found["smallest_class"]) == (2.0, 4.0)
