"""PRAM: the matrix, the draws, what one value tells, and counts that come back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from noren.designs import read_design
from noren.designs.decoys import DecoyDesign
from noren.designs.pram import PramDesign, rounded_parts
from noren.errors import ModelDoesNotApply, NorenError, PolicyError, QueryError, RequirementNotMet
from noren.estimates.counts.axes import Axis, numbered_column
from noren.estimates.counts.tabulate import tabulate
from noren.models import MODELS
from noren.models.base import Judgement, Overall
from noren.policy.policy import Policy
from noren.release.manifest import read_column, write_column
from noren.release.release import open_release
from noren.secret import Keystream, RecordStream, Secret
from noren.statements import ChangedStatement, CodeCells
from noren.workflow.anonymize import run
from noren.workflow.verify import verify
from tests.oracles.pram import distance, matrix, maximum_likelihood

PARTS = (7, 2, 5, 1, 1)
DESIGN = PramDesign(d=5, keep=0.4, parts=PARTS)


def changed(design: PramDesign, name: str = "s") -> ChangedStatement:
    return ChangedStatement(numbered_column(name, design.d), design)


# ---------------------------------------------------------------------- the design


def test_the_matrix_is_that_of_the_definition_and_invariant() -> None:
    slow = np.array([[float(p) for p in row] for row in matrix(Fraction(2, 5), PARTS)])
    assert np.allclose(DESIGN.inclusion_matrix(), slow)
    assert np.allclose(slow.sum(axis=1), 1)
    shares = np.array(PARTS) / sum(PARTS)
    assert np.allclose(shares @ DESIGN.inclusion_matrix(), shares)
    assert DESIGN.rho == pytest.approx(max((slow[:, u].max() / slow[:, u].min()) for u in range(5)))


def test_the_likelihood_is_the_matrix_up_to_a_factor_for_each_cell() -> None:
    rows = changed(DESIGN).likelihood(CodeCells(5, np.arange(5))).dense(5)
    ratio = rows / DESIGN.inclusion_matrix().T
    assert np.allclose(ratio, ratio[:, :1])
    even = PramDesign(d=5, keep=0.4)
    rows = changed(even).likelihood(CodeCells(5, np.arange(5))).dense(5)
    assert np.allclose(rows, even.inclusion_matrix().T)


def test_a_changed_column_needs_a_design_of_single_values() -> None:
    block = write_column(changed(DESIGN))
    wrong = block | {"design": {"name": "uniform-decoys", "d": 5, "eta": 2, "p": 1.0}}
    with pytest.raises(ValueError, match="single values"):
        read_column(wrong)


def test_equal_shares_are_randomised_response() -> None:
    pram, decoys = PramDesign(d=6, keep=0.3), DecoyDesign(d=6, eta=1, p=0.3)
    assert np.allclose(pram.inclusion_matrix(), decoys.inclusion_matrix())
    assert pram.rho == pytest.approx(decoys.rho)
    assert pram.p_true == pytest.approx(decoys.p_true)


@pytest.mark.parametrize("parts", [None, PARTS])
def test_draws_follow_the_matrix(parts) -> None:
    """Eight standard deviations in 25 cells: a false alarm is below 1e-13."""
    design, n = PramDesign(d=5, keep=0.4, parts=parts), 200_000
    codes = np.repeat(np.arange(5), n // 5)
    drawn = design.draw(codes, Keystream(), attribute="s").data
    seen = np.zeros((5, 5))
    np.add.at(seen, (codes, drawn), 1)
    expected = design.inclusion_matrix() * (n // 5)
    assert (np.abs(seen - expected) < 8 * np.sqrt(expected) + 2).all()


def test_memoised_values_follow_the_person_and_not_the_row() -> None:
    import pyarrow as pa

    stream = RecordStream(Secret.fresh())
    keys, codes = [f"k{i}" for i in range(500)], np.arange(500) % 5
    digests = stream.digests(pa.array(keys))
    once = DESIGN.draw(codes, stream, attribute="s", digests=digests).data
    back = np.random.default_rng(1).permutation(500)
    again = DESIGN.draw(codes[back], stream, attribute="s", digests=digests[back]).data
    assert np.array_equal(once[back], again)
    assert not np.array_equal(once, DESIGN.draw(codes, stream, attribute="other", digests=digests).data)


def test_inversion_is_exact_and_its_second_moments_too() -> None:
    x = np.array([50.0, 10, 0, 3, 7])
    assert np.allclose(DESIGN.inversion.invert(DESIGN.inclusion_matrix().T @ x, 0), x)
    scores = np.random.default_rng(2).normal(size=(3, 5))
    slow = np.array([[(DESIGN.inclusion_matrix()[v] * row**2).sum() for v in range(5)] for row in scores])
    assert np.allclose(DESIGN.second_moment(scores), slow)


def test_strange_designs_are_refused() -> None:
    for fields in ({"keep": 1.0}, {"keep": 0.0}, {"keep": 0.5, "parts": [1, 2]}, {"keep": 0.5, "parts": [0, 1, 1]}):
        with pytest.raises((ValueError, ValidationError)):
            read_design({"name": "pram", "d": 3, **fields})
    assert read_design(DESIGN.model_dump(mode="json")) == DESIGN


@pytest.mark.parametrize("t", [0.1, 0.3, 0.5, 0.9])
def test_keep_is_the_largest_within_the_bound_for_all_distributions(t: float) -> None:
    bound = ((1 + t) / (1 - t)) ** 2
    for parts in (None, PARTS):
        design = PramDesign.within(5, bound, parts)
        assert design.rho <= bound * (1 + 1e-12)
        assert PramDesign(d=5, keep=design.keep + 2e-4, parts=parts).rho > bound


def test_the_worked_example_of_the_docs() -> None:
    design = PramDesign.within(4, 9.0)
    assert design.keep == pytest.approx(2 / 3, abs=1e-4)
    assert design.inclusion_matrix()[0] == pytest.approx([0.75, 1 / 12, 1 / 12, 1 / 12], abs=1e-4)


def test_published_shares_are_coarse() -> None:
    assert rounded_parts(np.array([5000, 4001, 0, 12]), 50) == (28, 22, 1, 1)
    assert rounded_parts(np.array([5000, 4000, 1, 11]), 50) == (28, 22, 1, 1)


# ---------------------------------------------------------------------- what is judged


@pytest.mark.parametrize("ordered", [False, True])
def test_closeness_is_judged_by_bayes_theorem(ordered: bool) -> None:
    prior = [Fraction(c, 20) for c in (8, 5, 4, 2, 1)]
    rows = matrix(Fraction(2, 5), PARTS)
    worst = max(float(distance(prior, rows, u, ordered)) for u in range(5))
    model = MODELS["t-closeness"](on="s", t=0.2, distance="ordered" if ordered else "equal")
    overall = {"s": Overall(np.array([float(p) for p in prior]), "the original")}
    judgement = Judgement.of({"s": changed(DESIGN)}, [model], overall)
    for part in (np.arange(3), np.arange(3, 5)):
        judgement.observe({"s": CodeCells(5, part)})
    (verdict,) = judgement.verdicts()
    assert verdict.achieved == pytest.approx(worst)
    assert verdict.holds is (worst <= 0.2)


def test_a_recipient_has_a_proof_or_says_undecided() -> None:
    model = MODELS["t-closeness"](on="s", t=0.3)
    for design, holds in ((PramDesign.within(5, (1.3 / 0.7) ** 2), True), (PramDesign(d=5, keep=0.9), False)):
        judgement = Judgement.of({"s": changed(design)}, [model])
        judgement.observe({"s": CodeCells(5, np.arange(5))})
        (verdict,) = judgement.verdicts()
        assert (verdict.holds is True) is holds
        assert verdict.basis == "the published design"


def test_models_about_sets_and_classes_refuse_changed_values() -> None:
    for name, fields in (
        ("frequency-l-diversity", {"l": 2}),
        ("entropy-l-diversity", {"l": 2}),
        ("k-anonymity", {"k": 2}),
    ):
        with pytest.raises(ModelDoesNotApply, match="changed"):
            Judgement.of({"s": changed(DESIGN)}, [MODELS[name](on="s", **fields)])


# ---------------------------------------------------------------------- what comes back


@pytest.mark.parametrize("parts", [None, PARTS])
def test_the_likelihood_estimate_is_the_maximum(parts) -> None:
    design = PramDesign(d=5, keep=0.5, parts=parts)
    truth = np.repeat(np.arange(5), [900, 400, 300, 200, 200])
    cells = design.draw(truth, Keystream(salt=b"a fixed stream for this test"), attribute="s")
    found = tabulate([Axis("s", changed(design), cells)], tolerance=1e-6)
    slow = maximum_likelihood(design.inclusion_matrix(), np.bincount(cells.data, minlength=5))
    assert np.allclose(found.counts, slow, atol=0.1)
    linear = tabulate([Axis("s", changed(design), cells)], "linear")
    assert np.allclose(
        linear.counts, np.linalg.solve(design.inclusion_matrix().T, np.bincount(cells.data, minlength=5))
    )


def test_intervals_cover() -> None:
    """600 intervals of 95%: fewer than 89% of them cover by chance with probability below 1e-9."""
    truth = np.repeat(np.arange(5), [900, 400, 300, 250, 150])
    counts = np.bincount(truth)
    hits = 0
    for _ in range(120):
        axis = Axis("s", changed(DESIGN), DESIGN.draw(truth, Keystream(), attribute="s"))
        found = tabulate([axis], "linear")
        hits += int(((found.low <= counts) & (counts <= found.high)).sum())
    assert hits >= 0.89 * 600


def table(n: int = 4000) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    job = rng.choice(list("ABCDE"), n, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    sick = np.where(rng.random(n) < np.where(job == "A", 0.6, 0.2), "flu", rng.choice(["cold", "hiv", "none"], n))
    return pl.DataFrame({"id": np.arange(n), "job": job, "disease": sick, "sex": rng.choice(["f", "m"], n)})


ROLES = {"id": "identifier", "job": "quasi-identifier", "disease": "sensitive", "sex": "plain"}


def policy(t: float = 0.5, **options) -> Policy:
    asked = [{"model": "t-closeness", "on": "disease", "t": t}]
    return Policy(attributes=ROLES, require=asked, method={"name": "pram", **options})


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("prior", ["uniform", "data"])
def test_a_release_holds_and_estimates_come_back(prior: str, file_format, tmp_path) -> None:
    data, asked = table(), policy(prior=prior, keep={"job": 0.8, "sex": 0.9})
    run(data, asked, to=tmp_path / "r", file_format=file_format)
    release = open_release(tmp_path / "r")
    assert all(v.holds for v in verify(release, asked, original=data))
    assert all(v.holds for v in verify(release))
    both = release.estimate(["job", "disease"]).frame
    truth = data.group_by(["job", "disease"]).len()
    joined = both.join(truth, on=["job", "disease"], how="left").fill_null(0)
    assert (joined["count"] - joined["len"]).abs().sum() / 4000 < 0.5
    near = release.estimate(["sex", "job"])
    assert near.frame["count"].sum() == pytest.approx(4000, abs=1)
    with pytest.raises(QueryError, match="no sets to expand"):
        release.expand()


def test_changed_values_stand_beside_general_ones(tmp_path) -> None:
    data = table().with_columns(age=pl.Series(np.random.default_rng(1).integers(20, 60, 4000)))
    asked = Policy(
        attributes={**ROLES, "age": "quasi-identifier"},
        require=[{"model": "k-anonymity", "k": 20}, {"model": "t-closeness", "on": "disease", "t": 0.5}],
        method=[{"name": "mondrian"}, {"name": "pram", "on": ["disease"]}],
    )
    release = run(data, asked).release
    assert {s.form for s in release.statements} == {"node", "changed", "exact"}
    assert release.estimate(["job", "disease"]).records == 4000


def test_too_little_change_publishes_nothing() -> None:
    weak = policy(t=0.2, keep={"disease": 0.95})
    with pytest.raises(RequirementNotMet, match="t-closeness on 'disease'"):
        run(table(), weak)


def test_what_it_cannot_do_is_said_before_any_data() -> None:
    asked = [{"model": "frequency-l-diversity", "on": "disease", "l": 2}]
    with pytest.raises(PolicyError, match="cannot judge"):
        Policy(attributes=ROLES, require=asked, method={"name": "pram"})
    for keep in ({"id": 0.5}, {"job": 1.0}, {"job": 0}, {"nobody": 0.5}):
        with pytest.raises(PolicyError):
            policy(keep=keep)
    with pytest.raises(PolicyError, match="no column to change"):
        Policy(attributes={"job": "plain"}, method={"name": "pram"})
    with pytest.raises(PolicyError, match="single value"):
        run(table().with_columns(disease=pl.lit("flu")), policy())


def test_memoised_releases_repeat_and_another_matrix_is_refused(tmp_path) -> None:
    """A person's values must not be drawn twice: the average of many draws would be the truth."""
    Secret.create(tmp_path / "secret.key")
    data = table().with_columns(number=pl.col("sex") + pl.int_range(pl.len()).cast(pl.String))
    roles = {**ROLES, "id": "identifier", "number": "plain"}

    def released(order: pl.DataFrame, t: float) -> pl.DataFrame:
        asked = Policy(
            attributes=roles,
            require=[{"model": "t-closeness", "on": "disease", "t": t}],
            method={"name": "pram"},
            randomness={"record_key": "id"},
        )
        return run(order, asked, secret=tmp_path / "secret.key").release.frame().sort("number")

    first = released(data, 0.5)
    assert first.equals(released(data.sample(fraction=1.0, shuffle=True, seed=1), 0.5))
    with pytest.raises(NorenError):
        released(data, 0.3)
