"""What models declare of themselves, by which methods, searches and reports go."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from noren.errors import ModelDoesNotApply
from noren.models import MODELS, DistinctLDiversity, KAnonymity, TauLDiversity
from noren.models.base import Evidence, Judgement
from noren.models.tau_l_diversity import base_labels
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import CodeCells, GroupTable
from tests.statements import exact_column, group_column, node_column

TRUE: dict[str, set[str]] = {
    "higher_is_safer": {
        "k-anonymity", "distinct-l-diversity", "frequency-l-diversity", "entropy-l-diversity",
        "p-sensitive-k-anonymity", "expanded-k", "semantic-diversity", "le-diversity", "m-invariance",
    },
    "relative": {"t-closeness", "beta-likeness", "delta-disclosure", "qs-closeness"},
    "limits_share": {"frequency-l-diversity", "recursive-cl-diversity", "alpha-k-anonymity", "tau-l-diversity"},
    "together": {"k-anonymity", "local-privacy", "qs-diversity", "qs-closeness"},
    "invariant": {"m-invariance"},
    "separates": {"semantic-diversity", "le-diversity"},
    "counts_values": {"distinct-l-diversity", "frequency-l-diversity", "entropy-l-diversity"},
    "counts_holders": {"frequency-l-diversity", "alpha-k-anonymity", "tau-l-diversity"},
    "of_mechanism": {"mechanism"},
}  # fmt: skip
"""Larger k, l and m are safer; what compares with the whole table is relative; the others by their definition."""
MERGING_MAY_BREAK = {"belief", "mechanism", "m-invariance"}
"""What a rule tells, what others' records tell and what earlier releases said do not follow from the classes."""


@pytest.mark.parametrize("fact", TRUE)
def test_a_fact_is_true_of_these_models_alone(fact: str) -> None:
    assert {name for name, kind in MODELS.items() if getattr(kind, fact, False)} == TRUE[fact]


def test_classes_that_hold_may_be_put_together_but_for_these_models() -> None:
    assert {name for name, kind in MODELS.items() if not kind.coarsening_preserves} == MERGING_MAY_BREAK


# ---------------------------------------------------------------- weights of tau-l-diversity

TREE = Hierarchy((("flu", "cold", "ulcer"), ("lungs", "lungs", "gut"), ("*", "*", "*")))


@pytest.mark.parametrize(("weight", "fits"), [(-1, False), (0, True), (1e-9, True), (1e9, True), (inf, False)])
def test_a_weight_is_any_number_from_zero_up(weight: float, fits: bool) -> None:
    given: dict[str, Any] = {"on": "ill", "tau": 0.5, "l": 2, "weights": {"flu": weight}}
    if fits:
        found = TauLDiversity(**given).base_weights(node_column("ill", 3, hierarchy=TREE))
        assert found is not None
        assert found.tolist() == [weight, 1, 1]
    else:
        with pytest.raises(ValidationError):
            TauLDiversity(**given)


def test_base_values_are_named_by_a_hierarchy_or_by_nodes_of_their_own() -> None:
    assert base_labels(node_column("ill", 3, hierarchy=TREE)) == TREE.leaves
    nodes = Nodes.from_members(3, ["all", "zwei", "eins", "drei"], [(0, 1, 2), (1,), (0,), (2,)])
    assert base_labels(node_column("ill", 3, nodes=nodes)) == ("eins", "zwei", "drei")
    some = Nodes.from_members(3, ["all", "one", "two"], [(0, 1, 2), (0,), (1,)])
    with pytest.raises(ModelDoesNotApply, match="weights need the names of all values of 'ill'"):
        base_labels(node_column("ill", 3, nodes=some))
    strange = TauLDiversity(on="ill", tau=0.5, l=2, weights={"gout": 2.0})
    with pytest.raises(ModelDoesNotApply, match="name no value of 'ill'"):
        strange.base_weights(node_column("ill", 3, hierarchy=TREE))
    assert strange.base_weights(exact_column("ill", 3)) is None


# ---------------------------------------------------------------- classes


def test_groups_are_classes_of_their_own_whatever_else_is_published() -> None:
    """Two towns cut every group in two: of what a group holds they tell nothing."""
    table = GroupTable.from_codes(2, 3, np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 0, 1]))
    town = exact_column("town", 2, role=Role.QUASI_IDENTIFIER)
    ill = group_column("ill", 3, groups=table, role=Role.SENSITIVE)
    evidence = Evidence({"town": town, "ill": ill}, {})
    judgement = Judgement([one for size in (2, 3) for one in DistinctLDiversity(on="ill", l=size).checks(evidence)])
    judgement.observe(
        {"town": CodeCells(2, np.array([0, 0, 1, 1, 0, 1])), "ill": CodeCells(2, np.array([0, 0, 0, 1, 1, 1]))}
    )
    found = judgement.verdicts()
    assert [(one.achieved, one.holds) for one in found] == [(2, True), (2, False)]


def test_people_look_alike_in_all_quasi_identifiers() -> None:
    columns = {name: exact_column(name, 2, role=Role.QUASI_IDENTIFIER) for name in ("town", "sex")}
    columns["ill"] = exact_column("ill", 2, role=Role.SENSITIVE)
    assert Evidence(columns, {}).classes(None).needs == ("town", "sex")
    judgement = Judgement(KAnonymity(k=2).checks(Evidence(columns, {})))
    cells = {"town": [0, 0, 0, 1, 1], "sex": [0, 0, 0, 1, 1], "ill": [0, 1, 0, 0, 1]}
    judgement.observe({name: CodeCells(2, np.array(codes)) for name, codes in cells.items()})
    (verdict,) = judgement.verdicts()
    assert (verdict.achieved, verdict.holds) == (2, True)


def test_m_invariance_counts_values_that_one_record_each_has() -> None:
    """A value that two records of a class share leaves nothing to count."""
    town = exact_column("town", 2, role=Role.QUASI_IDENTIFIER)
    ill = exact_column("ill", 3, role=Role.SENSITIVE)
    for codes, achieved in (([0, 1, 2, 0, 1], 2), ([0, 1, 2, 0, 0], 0)):
        judgement = Judgement(MODELS["m-invariance"](on="ill", m=2).checks(Evidence({"town": town, "ill": ill}, {})))
        judgement.observe({"town": CodeCells(2, np.array([0, 0, 0, 1, 1])), "ill": CodeCells(3, np.array(codes))})
        (verdict,) = judgement.verdicts()
        assert (verdict.achieved, verdict.holds) == (achieved, achieved == 2)
