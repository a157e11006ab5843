"""The Bayesian attack on decoy sets: figures of docs/protection.md, correlations, closeness, semantic designs."""

from __future__ import annotations

from math import tanh

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import attack, reasons
from noren.audit.people import unique_pairs
from noren.audit.sets import Sets, published_sets
from noren.designs.decoys import DecoyDesign
from noren.errors import QueryError
from noren.policy.options import DependenceOptions
from noren.statements import SetCells
from tests.oracles.posterior import mean_true_probability
from tests.unit.audit.world import drawn

N = 6_000


def people(n: int = N, seed: int = 3) -> pl.DataFrame:
    """A job that decides the illness eight times out of ten, a town that has nothing to do with it, a unique number."""
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 6, n)
    ill = np.where(rng.random(n) < 0.8, job + 2, rng.choice(8, n, p=[0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]))
    return pl.DataFrame(
        {
            "number": np.arange(n),
            "town": [f"town {c}" for c in rng.integers(0, 5, n)],
            "job": [f"job {c}" for c in job],
            "trade": [f"trade {c}" for c in job],
            "ill": [f"ill {c}" for c in ill],
        }
    )


def policy(**roles) -> nr.Policy:
    given = {"number": nr.identifier(), "town": nr.plain(), "job": nr.plain(), "trade": nr.identifier()}
    hidden = ("ill", *(name for name in roles if roles[name].role == "sensitive"))
    return nr.Policy(
        attributes=given | {"ill": nr.sensitive()} | roles,
        require=[nr.models.FrequencyLDiversity(on=hidden, l=3)],
        method=nr.methods.Decoys(),
    )


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return people()


@pytest.fixture(scope="module")
def release(table) -> nr.Release:
    return nr.anonymize(table, policy())


def test_an_outsider_believes_more_with_correlations(release) -> None:
    (found,) = attack(release, "bayes")
    assert [one.name for one in found.scenarios] == ["all-rows", "overall-rows"]
    assert not found.holder_only
    everything, overall = (one.summary for one in found.scenarios)
    assert found.baseline["mean_belief"] < overall["mean_belief"] < everything["mean_belief"]
    assert found.notes[0].startswith("with all published columns")
    assert overall["above_1_l"] == pytest.approx(1, abs=0.05)
    frame = found.scenarios[0].frame
    assert frame.height == N
    assert frame["left"].unique().to_list() == [3]
    assert "right" not in frame.columns


def test_the_holder_sees_how_often_guesses_are_right(table, release) -> None:
    (found,) = attack(release, "bayes", original=table, policy=policy())
    assert [one.name for one in found.scenarios] == ["all", "overall", "overall-rows"]
    assert found.holder_only
    codes = np.unique(table["ill"].to_numpy(), return_inverse=True)[1]
    counts = np.bincount(codes)
    summary, bounds = found.scenario("overall").summary, found.scenario("overall").bounds
    low, high = bounds["mean_truth_belief"]
    assert low - 0.005 < mean_true_probability(counts, 3) < high + 0.005
    assert found.baseline["right"] == pytest.approx(counts.max() / N)
    assert found.baseline["mean_truth_belief"] == pytest.approx(((counts / N) ** 2).sum())
    low, high = bounds["right"]
    assert low < summary["mean_belief"] < high, "beliefs under the exact prior are calibrated"
    everything = found.scenario("all").summary
    assert everything["right"] > 0.75
    assert everything["right_before"] == pytest.approx(0.8, abs=0.04), "the job alone tells that much"
    assert summary["mean_truth_belief"] < everything["mean_truth_belief"]


def test_unique_exact_columns_recognise_the_row_itself(table) -> None:
    keyed = policy(number=nr.plain())
    release = nr.anonymize(table, keyed)
    (found,) = attack(release, "bayes", original=table, policy=keyed)
    assert found.facts["recognised"] == 1.0
    frame = found.scenario("overall").frame
    assert frame["recognised"].all()
    assert (frame["truth_belief"] > 0).all(), "every set holds the truth"


def test_another_decoy_column_tells_too(table) -> None:
    both = policy(trade=nr.sensitive(), job=nr.identifier())
    release = nr.anonymize(table, both)
    by_name = {one.target[0]: one for one in attack(release, "bayes", original=table, policy=both)}
    ill = by_name["ill"]
    assert "trade" in ill.facts["all_columns"]["used"]
    assert ill.scenario("all").summary["right"] > ill.scenario("overall").summary["right"] + 0.1
    assert "ill" in by_name["trade"].facts["all_columns"]["used"]
    assert "town" in release.columns


def test_closeness_keeps_its_bound() -> None:
    table = people(3_000)
    close = nr.Policy(
        attributes={
            "number": nr.identifier(),
            "town": nr.identifier(),
            "trade": nr.sensitive(),
            "job": nr.plain(),
            "ill": nr.sensitive(),
        },
        require=[nr.models.TCloseness(on=("ill", "trade"), t=0.2)],
        method=nr.methods.Decoys(),
        dependence={"most": 1.0},
    )
    release = nr.anonymize(table, close)
    for name in ("ill", "trade"):
        (found,) = attack(release, "bayes", original=table, policy=close, column=name)
        design = release.designs[name]
        limits = found.facts["largest_move_allowed"]
        assert limits["overall"] == pytest.approx(tanh(design.epsilon / 4))
        assert found.scenario("overall").summary["max_moved"] <= 0.2 + 1e-9, "that is what closeness promises"
        assert found.scenario("overall").summary["max_moved"] <= limits["overall"] + 1e-9
        assert any("tanh(epsilon/4)" in note for note in found.notes)


def test_semantic_sets_are_weighed_by_their_design() -> None:
    values = [str(age) for age in range(20, 40)]
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"age": rng.integers(20, 40, 2_000)})
    semantic = nr.Policy(
        attributes={"age": nr.sensitive(values=values, distance="ordinal")},
        require=[nr.models.SemanticDiversity(on="age", l=3, d=4)],
        method=nr.methods.Decoys(),
    )
    release = nr.anonymize(table, semantic)
    (found,) = attack(release, "bayes", original=table, policy=semantic)
    assert found.facts["epsilon"] == float("inf")
    assert found.scenario("overall").frame["left"].max() == 3
    low, high = found.scenario("overall").bounds["right"]
    assert low - 0.01 < found.scenario("overall").summary["mean_belief"] < high + 0.01
    (sets,) = published_sets(release).values()
    weights = sets.likelihood(slice(0, 10))
    assert (weights > 0).sum(axis=1).tolist() == [3] * 10


def test_what_does_not_apply_is_said(release) -> None:
    table = people(500)
    classes = nr.Policy(
        attributes={
            "number": nr.identifier(),
            "trade": nr.identifier(),
            "town": nr.quasi_identifier(),
            "job": nr.quasi_identifier(),
            "ill": nr.sensitive(),
        },
        require=[nr.models.DistinctLDiversity(on="ill", l=2)],
        method=nr.methods.Mondrian(),
    )
    general = nr.anonymize(table, classes)
    assert reasons(general)["bayes"] == "it publishes no decoy sets"
    assert reasons(release)["bayes"] is None
    with pytest.raises(QueryError, match="does not apply to this release: it publishes no decoy sets"):
        attack(general, "bayes")
    with pytest.raises(QueryError, match="no decoy column 'job'"):
        attack(release, "bayes", column="job")
    with pytest.raises(QueryError, match="bayes: given"):
        attack(release, "bayes", given="job")


def test_a_chart_and_lines_can_be_had(release) -> None:
    (found,) = attack(release, "bayes")
    assert "hconcat" in found.chart().to_dict()
    assert found.records().height == 2 * N


def test_the_likelihood_of_a_set_that_says_nothing_is_flat() -> None:
    for design in (DecoyDesign(d=3, eta=3), DecoyDesign(d=3, eta=2, p=0)):
        sets = Sets(drawn("x", design), SetCells.from_codes(3, np.arange(design.eta)[None, :]))
        assert sets.likelihood(slice(0, 1)) == pytest.approx(np.ones((1, 3)))


def test_rows_are_matched_where_they_are_unique_on_both_sides() -> None:
    left = pl.DataFrame({"x": ["a", "b", "b", None, "d"]})
    right = pl.DataFrame({"x": ["d", "d", None, "a", "b"]})
    assert [part.tolist() for part in unique_pairs(left, right)] == [[0, 3], [3, 2]]
    assert not len(unique_pairs(pl.DataFrame(), pl.DataFrame())[0])


@pytest.mark.parametrize("kind", [pl.UInt32, pl.Int64, pl.String, pl.Boolean, pl.Float64])
def test_whatever_the_cells_are_rows_are_matched_as_by_comparing_each_with_each(kind: type[pl.DataType]) -> None:
    rng = np.random.default_rng(3)
    sides = [rng.integers(0, 9, (n, 2)) for n in (40, 30)]
    frames = []
    for cells in sides:
        whole = pl.DataFrame({"x": cells[:, 0] % 2 if kind is pl.Boolean else cells[:, 0], "y": cells[:, 1]})
        hidden = pl.when(pl.col("y") == 4).then(None).otherwise(pl.col("x"))
        frames.append(whole.with_columns(x=hidden.cast(kind), y=pl.col("y").cast(pl.UInt32)))
    rows = [frame.rows() for frame in frames]
    expected = [
        (i, rows[1].index(row)) for i, row in enumerate(rows[0]) if rows[0].count(row) == 1 and rows[1].count(row) == 1
    ]
    mine, theirs = unique_pairs(*frames)
    assert expected
    assert list(zip(mine.tolist(), theirs.tolist(), strict=True)) == expected


def test_values_changed_at_random_are_evidence_as_sets_are() -> None:
    """PRAM publishes one value, which moves no prior further than its epsilon allows; with the job more is known."""
    table = people()
    roles = {"number": nr.identifier(), "town": nr.plain(), "job": nr.plain(), "trade": nr.identifier()}
    asked = [nr.models.LocalPrivacy(on="ill", epsilon=1.0)]
    rules = nr.Policy(
        attributes=roles | {"ill": nr.sensitive()}, require=asked, method=nr.methods.Pram(), dependence={"most": 1.0}
    )
    release = nr.anonymize(table, rules)
    (found,) = attack(release, "bayes", original=table, policy=rules)
    own, everything = found.scenario("overall").summary, found.scenario("all").summary
    assert own["max_moved"] <= tanh(1.0 / 4) + 1e-9  # for every prior
    assert everything["right"] > own["right"] + 0.3


def test_without_a_name_every_attack_that_applies_is_run() -> None:
    release = nr.anonymize(people(600), policy().model_copy(update={"dependence": DependenceOptions(most=1.0)}))
    found = attack(release)
    assert list(dict.fromkeys(one.attack for one in found)) == [
        name for name, reason in reasons(release).items() if reason is None
    ]
    with pytest.raises(QueryError, match="no attack has these options: k"):
        attack(release, k=2)
