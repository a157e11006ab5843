"""Privacy models: what holds, what does not, by how much, and on which ground."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import noren as nr
from noren.designs.decoys import DecoyDesign, largest_p
from noren.errors import ModelDoesNotApply
from noren.models import (
    MODELS,
    DistinctLDiversity,
    EntropyLDiversity,
    Evidence,
    ExpandedK,
    FrequencyLDiversity,
    Model,
    Overall,
    TCloseness,
    Verdict,
)
from noren.models.base import columns_of
from noren.schema.hierarchy import Hierarchy
from noren.statements import CodeCells, OpenCells, SetCells
from tests.oracles import closeness, expanded
from tests.statements import exact_column, open_column, set_column


def sets(d: int, *members: tuple[int, ...]) -> SetCells:
    """Sets of any sizes as bit masks."""
    return SetCells(d, np.array([sum(1 << v for v in cell) for cell in members], np.uint64))


def judged(
    model: Model, *batches: Any, d: int = 5, design: DecoyDesign | None = None, overall: Overall | None = None
) -> Verdict:
    column = set_column("x", d, design)
    check = model.check(column, Evidence({"x": column}, {} if overall is None else {"x": overall}))
    for cells in batches:
        check.observe({"x": cells})
    return check.verdict()


SIZED = [
    FrequencyLDiversity(on="x", l=3),
    EntropyLDiversity(on="x", l=3),
    ExpandedK(on="x", k=3),
    DistinctLDiversity(on="x", l=3),
]


@pytest.mark.parametrize("model", SIZED, ids=lambda model: model.model)
def test_sets_that_are_large_enough(model: Model) -> None:
    verdict = judged(model, sets(5, (0, 1, 2), (1, 2, 3, 4)), sets(5, (0, 2, 4)))
    assert verdict.holds is True
    assert (verdict.required, verdict.achieved, verdict.records, verdict.breaches) == (3, 3, 3, 0)
    assert (verdict.model, verdict.column, verdict.basis) == (model.model, "x", "the release alone")


@pytest.mark.parametrize("model", SIZED, ids=lambda model: model.model)
def test_one_set_that_is_too_small_is_found_in_any_batch(model: Model) -> None:
    verdict = judged(model, sets(5, (0, 1, 2)), sets(5, (3,), (0, 1, 2, 3), (1, 4)), sets(5, (0, 1, 2)))
    assert verdict.holds is False
    assert (verdict.achieved, verdict.records, verdict.breaches) == (1, 5, 2)


@pytest.mark.parametrize("model", SIZED, ids=lambda model: model.model)
def test_no_records_prove_nothing(model: Model) -> None:
    assert judged(model).holds is False
    assert judged(model, sets(5)).holds is False


def test_entropy_takes_broken_numbers() -> None:
    assert judged(EntropyLDiversity(on="x", l=2.5), sets(5, (0, 1, 2))).holds is True
    assert judged(EntropyLDiversity(on="x", l=2.5), sets(5, (0, 1))).holds is False
    assert EntropyLDiversity(on="x", l=2.5).least_set_size == 3


def test_large_domains_are_checked_as_codes() -> None:
    good = SetCells.from_codes(100, np.array([[5, 99, 0], [7, 8, 9]]))
    assert judged(SIZED[0], good, d=100).achieved == 3
    assert judged(FrequencyLDiversity(on="x", l=4), good, d=100).breaches == 2


@pytest.mark.parametrize("model", [*SIZED, TCloseness(on="x", t=0.9)], ids=lambda model: model.model)
@pytest.mark.parametrize(
    ("cells", "d", "message"),
    [
        (CodeCells(5, np.array([1, 2])), 5, "does not hold sets over its 5 values"),
        (OpenCells(pa.array(["a"])), 5, "does not hold sets over its 5 values"),
        (sets(4, (0, 1, 2)), 5, "does not hold sets over its 5 values"),
        (sets(5, (0, 1, 5)), 5, "a value outside its domain"),
        (SetCells(70, np.array([[0, 1, 70]])), 70, "a value outside its domain"),
        (SetCells(70, np.array([[0, 1, 1]])), 70, "repeats a value"),
        (SetCells(70, np.array([[0, 2, 1]])), 70, "out of order"),
    ],
)
def test_cells_that_are_no_sets_of_the_domain_are_refused(model: Model, cells: Any, d: int, message: str) -> None:
    overall = Overall(np.full(d, 1 / d), "the original")
    with pytest.raises(ModelDoesNotApply, match=message):
        judged(model, cells, d=d, design=DecoyDesign(d=d, eta=3), overall=overall)


records_and_shape = st.integers(1, 3).flatmap(
    lambda q: st.lists(
        st.lists(st.frozensets(st.integers(0, 3), min_size=1), min_size=q, max_size=q), min_size=1, max_size=5
    )
)


@settings(max_examples=150, deadline=None)
@given(records_and_shape)
def test_what_is_achieved_is_a_lower_bound_of_the_written_out_classes(records: list[list[frozenset[int]]]) -> None:
    for j in range(len(records[0])):
        cells = sets(4, *(tuple(record[j]) for record in records))
        achieved = {model.model: judged(model, cells, d=4).achieved for model in SIZED}
        truth = {
            "frequency-l-diversity": expanded.frequency_l(records, j),
            "entropy-l-diversity": expanded.entropy_l(records, j),
            "expanded-k": expanded.expanded_k(records, j),
            "distinct-l-diversity": min(len(group) for group in expanded.classes(records, j)),
        }
        for name, value in truth.items():
            assert achieved[name] <= value + 1e-9
            if len(records) == 1:
                assert achieved[name] == pytest.approx(value)


@given(records_and_shape, st.integers(2, 4))
def test_a_verdict_that_holds_holds_for_every_written_out_class(records: list[list[frozenset[int]]], l: int) -> None:  # noqa: E741
    cells = sets(4, *(tuple(record[0]) for record in records))
    if judged(FrequencyLDiversity(on="x", l=l), cells, d=4).holds:
        for group in expanded.classes(records, 0):
            assert max(group.values()) * l <= group.total()


counts_lists = st.lists(st.integers(0, 40), min_size=2, max_size=6).filter(any)


@settings(max_examples=150, deadline=None)
@given(counts_lists, st.data(), st.sampled_from(["equal", "ordered"]), st.floats(0.01, 1), st.floats(0.02, 0.9))
def test_closeness_is_bayes_and_the_earth_movers_distance(
    counts: list[int], data: st.DataObject, kind: str, p: float, t: float
) -> None:
    d = len(counts)
    eta = data.draw(st.integers(1, d))
    chosen = data.draw(st.lists(st.sampled_from(list(combinations(range(d), eta))), min_size=1, max_size=6))
    beliefs = {cell: closeness.belief(counts, cell, Fraction(p)) for cell in chosen}
    assume(all(belief is not None for belief in beliefs.values()))
    shares = closeness.distribution(counts)
    moved = {cell: float(closeness.distance(shares, belief, kind)) for cell, belief in beliefs.items()}
    assume(all(abs(distance - t) > 1e-6 for distance in moved.values()))
    overall = Overall(np.array(counts) / sum(counts), "the original")
    design = DecoyDesign(d=d, eta=eta, p=p)
    assume(abs(design.rho - ((1 + t) / (1 - t)) ** 2) > 1e-9)
    verdict = judged(TCloseness(on="x", t=t, distance=kind), sets(d, *chosen), d=d, design=design, overall=overall)
    assert verdict.breaches == sum(times for cell, times in Counter(chosen).items() if moved[cell] > t)
    assert verdict.holds is (verdict.breaches == 0)
    if design.rho <= ((1 + t) / (1 - t)) ** 2:
        assert verdict.basis == "the published design"
        assert max(moved.values()) - 1e-9 <= verdict.achieved <= t + 1e-9
    else:
        assert verdict.basis == "the original"
        assert verdict.achieved == pytest.approx(max(moved.values()), abs=1e-9)


def test_closeness_of_a_large_domain_is_the_same_as_of_its_masks() -> None:
    counts = np.arange(1, 71)
    design = DecoyDesign(d=70, eta=3, p=0.5)
    verdict = judged(
        TCloseness(on="x", t=0.5),
        SetCells.from_codes(70, np.array([[0, 1, 69], [3, 4, 5]])),
        d=70,
        design=design,
        overall=Overall(counts / counts.sum(), "the original"),
    )
    shares = closeness.distribution(counts.tolist())
    expected = [
        float(closeness.distance(shares, closeness.belief(counts.tolist(), cell, Fraction(1, 2)), "equal"))
        for cell in ((0, 1, 69), (3, 4, 5))
    ]
    assert verdict.achieved == pytest.approx(max(expected))


def test_closeness_wants_the_set_size_of_the_design() -> None:
    overall = Overall(np.full(4, 0.25), "the original")
    design = DecoyDesign(d=4, eta=2, p=0.1)
    verdict = judged(TCloseness(on="x", t=0.5), sets(4, (0, 1), (1,), (1, 2, 3)), d=4, design=design, overall=overall)
    assert verdict.holds is False
    assert verdict.breaches == 2
    assert "2 sets do not have the 2 values of the design" in verdict.statement


ESTIMATE = "an estimate from the release"


def recipient(design: DecoyDesign, t: float, shares: list[float], error: float | list[float]) -> Verdict:
    d = len(shares)
    overall = Overall(np.array(shares), ESTIMATE, np.zeros(d) + error)
    cells = sets(d, *combinations(range(d), design.eta))
    return judged(TCloseness(on="x", t=t), cells, d=d, design=design, overall=overall)


def test_the_recipient_needs_no_distribution_where_the_design_proves_closeness() -> None:
    free = DecoyDesign(d=4, eta=2, p=largest_p(4, 2, (1.3 / 0.7) ** 2))
    verdict = recipient(free, 0.3, [0.97, 0.01, 0.01, 0.01], 0.2)
    assert verdict.holds is True
    assert verdict.basis == "the published design"
    assert verdict.achieved == pytest.approx(0.3)
    assert "no set moves any distribution by more than 0.3" in verdict.statement
    beyond = DecoyDesign(d=4, eta=2, p=largest_p(4, 2, 1.01 * (1.3 / 0.7) ** 2))
    assert recipient(beyond, 0.3, [0.97, 0.01, 0.01, 0.01], 0.2).basis == ESTIMATE


def test_the_recipient_leaves_open_what_lies_within_the_error_of_the_estimate() -> None:
    design = DecoyDesign(d=4, eta=2, p=0.6)
    exact = recipient(design, 0.3, [0.25] * 4, 0.0).achieved
    verdict = recipient(design, exact - 0.005, [0.25] * 4, 0.05)
    assert verdict.holds is None
    assert verdict.basis == ESTIMATE
    assert "the original settles it" in verdict.statement


def test_the_recipient_sees_a_gross_violation() -> None:
    design = DecoyDesign(d=4, eta=2, p=0.9)
    verdict = recipient(design, 0.05, [0.25] * 4, 0.001)
    assert verdict.holds is False
    assert verdict.breaches == 6


def test_the_recipient_looks_around_the_estimated_shares_and_not_elsewhere() -> None:
    """Evenly spread values would be moved by 0.45 alone: shares near the estimate are those that count."""
    design = DecoyDesign(d=4, eta=2, p=0.9)
    assert recipient(design, 0.3, [0.25] * 4, 0.0).achieved < 0.5
    assert recipient(design, 0.55, [0.7, 0.1, 0.1, 0.1], 0.0001).holds is False


def test_an_estimate_that_may_be_nothing_is_passed_over() -> None:
    """Errors so large that some of the shares around the estimate are all below zero: these are no distribution."""
    verdict = recipient(DecoyDesign(d=2, eta=1, p=0.9), 0.05, [0.5, 0.5], 0.36)
    assert (verdict.holds, verdict.breaches) == (None, 2)


def test_the_recipient_doubts_an_excess_that_smaller_shares_would_not_show() -> None:
    """Only the rare value is uncertain, and were it rarer its set would move beliefs by less than t."""
    design = DecoyDesign(d=2, eta=1, p=0.6)
    exact = recipient(design, 0.1, [0.95, 0.05], 0.0).achieved
    assert recipient(design, 0.1, [0.96, 0.04], 0.0).achieved < exact < recipient(design, 0.1, [0.9, 0.1], 0.0).achieved
    assert recipient(design, exact - 1e-4, [0.95, 0.05], [0.0, 0.01]).holds is None


def test_the_recipient_sees_that_an_estimate_is_within_t() -> None:
    verdict = recipient(DecoyDesign(d=4, eta=2, p=0.9), 0.95, [0.25] * 4, 0.01)
    assert verdict.holds is True


def test_holder_and_recipient_judge_a_release() -> None:
    table = pa.table({"x": ["a"] * 700 + ["b"] * 200 + ["c"] * 60 + ["d"] * 40})
    policy = nr.Policy(
        attributes={"x": nr.sensitive()}, require=[TCloseness(on="x", t=0.25), FrequencyLDiversity(on="x", l=2)]
    )
    release = nr.anonymize(table, policy)
    assert [verdict.holds for verdict in nr.verify(release, original=table)] == [True, True]
    assert [verdict.holds is False for verdict in nr.verify(release, policy)] == [False, False]
    stricter = nr.Policy(
        attributes={"x": nr.sensitive()}, require=[TCloseness(on="x", t=0.01), FrequencyLDiversity(on="x", l=4)]
    )
    assert [verdict.holds for verdict in nr.verify(release, stricter, original=table)] == [False, False]


@pytest.mark.parametrize("model", [*SIZED, TCloseness(on="x", t=0.5)], ids=lambda model: model.model)
@pytest.mark.parametrize("make", [exact_column, open_column])
def test_forms_that_a_model_says_nothing_about_are_refused_by_name(model: Model, make: Any) -> None:
    column = make("pay", 5)
    with pytest.raises(ModelDoesNotApply, match=f"{model.model} makes no statement about column 'pay', which is publ"):
        model.check(column, Evidence({"pay": column}, {}))


def test_closeness_of_sets_by_tree_distance_needs_a_tree_where_the_design_proves_nothing() -> None:
    overall = Overall(np.full(5, 0.2), "the original")
    with pytest.raises(ModelDoesNotApply, match="by tree distance needs a hierarchy"):
        judged(TCloseness(on="x", t=0.5, distance="tree"), design=DecoyDesign(d=5, eta=2), overall=overall)
    proven = judged(TCloseness(on="x", t=0.5, distance="tree"), sets(5, (0, 1)), design=DecoyDesign.within(5, 9.0, 2))
    assert (proven.holds, proven.basis) == (True, "the published design")


def test_closeness_of_sets_by_tree_distance_sums_over_the_levels() -> None:
    """Half the moved mass at each level of the tree, in the mean: leaves, then the two branches."""
    tree = Hierarchy.from_tree({"low": ["0", "1"], "high": ["2", "3"]})
    shares, design = np.array([0.4, 0.3, 0.2, 0.1]), DecoyDesign(d=4, eta=2, p=0.9)
    column = set_column("x", 4, design, hierarchy=tree)
    model = TCloseness(on="x", t=0.1, distance="tree")
    check = model.check(column, Evidence({"x": column}, {"x": Overall(shares, "the original")}))
    check.observe({"x": sets(4, (0, 2))})
    joint = shares * np.array([design.kappa_in, design.kappa_out, design.kappa_in, design.kappa_out])
    moved = joint / joint.sum() - shares
    expected = (np.abs(moved).sum() / 2 + np.abs(moved.reshape(2, 2).sum(axis=1)).sum() / 2) / 2
    verdict = check.verdict()
    assert (verdict.holds, verdict.basis) == (False, "the original")
    assert verdict.achieved == pytest.approx(expected)


def test_closeness_is_refused_without_a_distribution() -> None:
    with pytest.raises(ModelDoesNotApply, match="needs the overall distribution"):
        judged(TCloseness(on="x", t=0.5), d=5, design=DecoyDesign(d=5, eta=2))


def test_the_registry_knows_every_model_by_its_own_name() -> None:
    assert {name: kind.model_fields["model"].default for name, kind in MODELS.items()} == {
        name: name for name in MODELS
    }


@pytest.mark.parametrize("model", [*SIZED, TCloseness(on=["x", "y"], t=0.5, distance="ordered")])
def test_models_survive_json(model: Model) -> None:
    assert MODELS[model.model].model_validate_json(model.model_dump_json()) == model
    assert set(model.parameters()) == set(type(model).model_fields) - {"model", "on"}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (FrequencyLDiversity, {"l": 1}),
        (FrequencyLDiversity, {"l": 2.5}),
        (EntropyLDiversity, {"l": 1}),
        (ExpandedK, {"k": 1}),
        (TCloseness, {"t": 0}),
        (TCloseness, {"t": 1}),
        (TCloseness, {"t": 0.5, "distance": "cosine"}),
        (TCloseness, {"t": 0.5, "l": 2}),
    ],
)
def test_parameters_that_make_no_sense(kind: type[Model], options: dict) -> None:
    with pytest.raises(ValidationError):
        kind(on="x", **options)


def test_on_takes_one_column_or_several_once_each() -> None:
    assert ExpandedK(on="x", k=2).on == ("x",)
    assert columns_of([ExpandedK(on="x", k=2), TCloseness(on=["x", "y"], t=0.5)]) == {"x", "y"}
    for wrong in ([], ["x", "x"]):
        with pytest.raises(ValidationError):
            ExpandedK(on=wrong, k=2)
