"""The design for a bound on informed belief against enumeration of all sets, a generic solver and published numbers."""

from __future__ import annotations

from math import ceil, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from noren.designs import InformedDesign, read_design
from noren.designs.inversion import solve
from noren.secret import Keystream, RecordStream, Secret
from tests.oracles import informed as oracle

ALARM = 1e-12
"""Chance of a false alarm per comparison."""
WORK = (0.738, 0.083, 0.068, 0.046, 0.036, 0.028, 0.001)
SCHOOL = (0.326, 0.219, 0.166, 0.056, 0.044, 0.04, 0.036, 0.03, 0.026, 0.02, 0.017, 0.009, 0.005, 0.003, 0.002, 0.001)
JOBS = (0.135, 0.133, 0.132, 0.122, 0.119, 0.107, 0.065, 0.05, 0.044, 0.035, 0.032, 0.021, 0.004, 0.001)
"""Shares like those of Adult's workclass, education and occupation."""


@st.composite
def designs(draw: st.DrawFn) -> tuple[InformedDesign, float]:
    """A design over up to seven values, and the bound that it was asked to keep."""
    weights = draw(st.lists(st.integers(1, 60), min_size=3, max_size=7))
    shares = np.array(weights) / sum(weights)
    most = draw(st.floats(0.2, 0.95))
    found = InformedDesign.within(shares, most, draw(st.sampled_from([2, 2, 3])))
    assume(found is not None)
    assert found is not None
    return found, most


def dense(design: InformedDesign) -> dict[tuple[int, ...], dict[int, float]]:
    return oracle.likelihoods(list(design.prior), design.most, design.eta, list(design.multipliers), design.power)


@given(designs())
def test_no_belief_exceeds_the_bound_and_every_chance_is_that_of_the_formula(made):
    design, most = made
    expected = dense(design)
    sets = np.array(list(expected))
    weights = design.member_weights(sets)
    assert np.allclose(weights, [list(row.values()) for row in expected.values()], rtol=1e-9)
    assert np.allclose(np.bincount(sets.ravel(), weights.ravel(), design.d), 1, atol=1e-12)
    known = [max(oracle.beliefs(row, list(design.prior)).values()) for row in expected.values()]
    assert max(known) <= most * (1 + 1e-9)
    assert design.worst_under(np.array(design.prior)) == pytest.approx(max(known), rel=1e-12)
    even = [1 / design.d] * design.d
    alike = max(max(oracle.beliefs(row, even).values()) for row in expected.values())
    assert design.worst_belief() == pytest.approx(alike, rel=1e-9)


@given(designs())
def test_sums_over_sets_are_those_of_the_list(made):
    design, _ = made
    expected = np.zeros((design.d, design.d))
    for members, row in dense(design).items():
        for v, chance in row.items():
            expected[v, list(members)] += chance
    assert np.allclose(design.inclusion_matrix(), expected, atol=1e-9)
    assert design.error() == pytest.approx(oracle.error(dense(design), list(design.prior)), rel=1e-6)
    scores = np.eye(design.d) + 0.5
    moments = design.second_moment(scores)
    for v in range(design.d):
        again = sum(row[v] * scores[:, members].sum(axis=1) ** 2 for members, row in dense(design).items() if v in row)
        assert np.allclose(moments[:, v], again)
    assert solve(design).undetermined == 0


@given(designs())
def test_a_published_design_is_read_back_and_draws_what_it_says(made):
    design, _ = made
    assert read_design(design.model_dump(mode="json")) == design
    rng = np.random.default_rng(1)  # of the test's data
    codes = rng.integers(0, design.d, 3000)
    sets = design.draw(codes, Keystream(), attribute="a").codes(design.eta).astype(np.int64)
    assert (sets == codes[:, None]).any(axis=1).all()
    assert (np.diff(sets, axis=1) > 0).all()
    drawn: dict[tuple[int, tuple[int, ...]], int] = {}
    for code, members in zip(codes.tolist(), map(tuple, sets.tolist()), strict=True):
        drawn[code, members] = drawn.get((code, members), 0) + 1
    for members, row in dense(design).items():
        for v, chance in row.items():
            n = int((codes == v).sum())
            slack = sqrt(2 * n * chance * log(2 / ALARM)) + 2 / 3 * log(2 / ALARM)  # Bernstein
            assert abs(drawn.pop((v, members), 0) - n * chance) <= slack
    assert not drawn


def test_memoised_sets_are_a_function_of_the_record():
    design = InformedDesign.within(SCHOOL, 0.4)
    assert design is not None
    stream = RecordStream(Secret(bytes(32)))
    codes = np.arange(400) % 16
    digests = stream.digests([f"r{i}" for i in range(400)])
    first = design.draw(codes, stream, attribute="a", digests=digests).codes(design.eta)
    order = np.random.default_rng(2).permutation(400)
    again = design.draw(codes[order], stream, attribute="a", digests=digests[order]).codes(design.eta)
    assert (again == first[order]).all()
    other = design.draw(codes, stream, attribute="b", digests=digests).codes(design.eta)
    assert (other != first).any()


@pytest.mark.parametrize(
    ("shares", "most", "near"),
    [(WORK, 0.831, 1.04), (SCHOOL, 0.740, 1.03), (SCHOOL, 0.616, 1.01), (JOBS, 0.542, 1.01), (JOBS, 0.361, 1.01)],
)
def test_the_error_is_near_the_least_of_all_designs_of_its_kind(shares, most, near):
    """The bounds are the average right guesses from uniform decoys, l = 3 or 5."""
    pi = (np.array(shares) / sum(shares)).tolist()
    design = InformedDesign.within(pi, most)
    assert design is not None
    least = oracle.least_error(pi, most, ranked=True)
    assert least * (1 - 1e-6) <= design.error() <= least * near
    if len(oracle.all_sets(design.d, design.eta)) <= 120:  # the solver takes minutes over many more corners
        assert oracle.least_error(pi, most) <= least * (1 + 1e-6)


def test_conditional_poisson_sampling_gives_the_published_joint_inclusions():
    """Tillé, Sampling Algorithms (2006), chapter 5: the six units of its examples, n = 3, printed to four digits."""
    single = np.array([0.07, 0.17, 0.41, 0.61, 0.83, 0.91])
    joint = [
        [0.0700, 0.0049, 0.0130, 0.0215, 0.0447, 0.0559],
        [0.0049, 0.1700, 0.0324, 0.0537, 0.1113, 0.1377],
        [0.0130, 0.0324, 0.4100, 0.1407, 0.2888, 0.3452],
        [0.0215, 0.0537, 0.1407, 0.6100, 0.4691, 0.5351],
        [0.0447, 0.1113, 0.2888, 0.4691, 0.8300, 0.7461],
        [0.0559, 0.1377, 0.3452, 0.5351, 0.7461, 0.9100],
    ]
    design = InformedDesign.within(single / 3, 1 / 3)
    assert design is not None
    assert (design.eta, design.most) == (3, 1 / 3)
    assert np.abs(design.inclusion_matrix() * single[:, None] - joint).max() <= 0.5e-4 + 1e-9


def test_equal_shares_are_uniform_decoys():
    """With g = 1/l and all values as common every set of l is as likely."""
    design = InformedDesign.within(np.ones(6), 1 / 3)
    assert design is not None
    weights = design.member_weights(np.array(oracle.all_sets(6, 3)))
    assert np.allclose(weights, 1 / 10)


@pytest.mark.parametrize(
    ("shares", "most", "least"),
    [((0.5, 0.3, 0.2), 0.5, 2), ((0.6, 0.3, 0.1), 0.5, 2), ((0.4, 0.3, 0.3), 0.4, 2), ((0.5, 0.5), 0.6, 2),
     ((0.5, 0.3, 0.1, 0.1), 0.7, 3)],
)  # fmt: skip
def test_there_is_no_design_where_the_bound_leaves_no_room(shares, most, least):
    """A share at the bound, sets of the whole domain, and sets of more values than the common one can be in."""
    assert InformedDesign.within(shares, most, least) is None


def test_a_bound_that_the_shares_do_not_permit_is_kept_by_a_smaller_belief():
    """Of three nearly equal values the rarest is the rarest of every set it is in: at 0.9 it would be too common."""
    design = InformedDesign.within((0.4, 0.35, 0.25), 0.9)
    assert design is not None
    assert 0.4 < design.most < 0.75
    assert ceil(1 / design.most) == design.eta


def test_a_large_domain_is_served():
    shares = 1 / np.arange(1, 301)
    design = InformedDesign.within(shares, 0.3)
    assert design is not None
    assert design.eta == 4
    assert design.worst_under(shares / shares.sum()) <= 0.3 * (1 + 1e-9)
    assert np.allclose(design.inclusion_matrix().sum(axis=1), 4)


@pytest.mark.parametrize(
    "wrong",
    [{"power": 0}, {"power": 5},
     {"eta": 3}, {"d": 4}, {"most": 0.4}, {"most": 1.0}, {"prior": (0.5, 0.5, 0.0)}, {"prior": (0.5, 0.4, 0.3)},
     {"multipliers": (0.0, 0.0)}, {"multipliers": (0.0, float("inf"), 0.0)},
        {"multipliers": (0.0, 0.0, -4000.0)}],
)  # fmt: skip
def test_a_manifest_cannot_hold_parameters_of_no_design(wrong):
    fine = {"name": "informed", "d": 3, "eta": 2, "most": 0.6, "prior": (0.4, 0.35, 0.25), "multipliers": (0, 0, 0)}
    fine["power"] = 1
    assert read_design(fine).d == 3
    with pytest.raises(ValueError, match="not valid"):
        read_design(fine | wrong)
