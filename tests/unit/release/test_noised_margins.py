"""Noised margins: what is drawn, published, refused, verified, and what it adds to estimates."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.designs.central import noise_variance, noised, scale_of
from noren.errors import PolicyError, ReleaseError, RequirementNotMet
from noren.estimates.statistics.noised import Folded, NoisedTable, Weighed, weigh
from noren.release.manifest import PublishedMargin
from noren.release.noised import Margins
from noren.report import make_report
from noren.secret import Register, Secret
from noren.workflow.verify import reach_of_noise

N = 3_000


@cache
def people(n: int = N, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    town, job = rng.choice(["Bonn", "Kiel", "Ulm"], n), rng.integers(0, 5, n)
    ill = np.minimum(rng.poisson(0.6 + 0.4 * job), 5)
    return pl.DataFrame(
        {
            "pid": np.arange(n),
            "town": town,
            "job": np.array(["cook", "clerk", "miner", "nurse", "smith"])[job],
            "ill": ill,
        }
    )


def policy(margins: list[dict[str, object]], l: int = 3, **more: object) -> nr.Policy:  # noqa: E741
    given: dict[str, object] = {
        "attributes": {"pid": "identifier", "town": "plain", "job": "sensitive", "ill": "sensitive"},
        "require": [nr.models.FrequencyLDiversity(on=["job", "ill"], l=l)],
        "dependence": {"most": 1.0},
        "margins": margins,
    }
    return nr.Policy(**(given | more))


PAIR: dict[str, object] = {"of": ["job", "ill"], "epsilon": 1.0}


@cache
def release() -> nr.Release:
    return nr.anonymize(people(), policy([PAIR]))


# ---------------------------------------------------------------------- the noise


def test_noise_has_the_variance_of_discrete_laplace() -> None:
    counts = np.full(20_000, 100, np.int64)
    found = noised(counts, 2, 0.5) - 100
    variance = noise_variance(scale_of(2, 0.5))
    q = np.exp(-1 / scale_of(2, 0.5))
    k = np.arange(-400, 401)
    assert variance == pytest.approx((k**2 * q ** np.abs(k)).sum() * (1 - q) / (1 + q))
    # the fourth moment of Laplace noise is 6 variances squared: the mean of squares has error variance sqrt(5 / n)
    assert found.var() == pytest.approx(variance, rel=6.5 * np.sqrt(5 / len(counts)))
    assert abs(found.mean()) < 6.5 * np.sqrt(variance / len(counts))
    low, high = reach_of_noise(len(counts), scale_of(2, 0.5))
    assert low < np.abs(found).sum() < high
    assert not low < 0.8 * np.abs(found).sum() < high


def test_the_same_counts_are_noised_anew() -> None:
    assert (noised(np.zeros(200, np.int64), 2, 0.1) != noised(np.zeros(200, np.int64), 2, 0.1)).any()


def test_without_opendp_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(PolicyError, match=r"noren\[dp\]"):
        noised(np.zeros(2, np.int64), 2, 1.0)


# ---------------------------------------------------------------------- what is published


def test_a_release_names_its_margins_and_what_they_spend(tmp_path: Path) -> None:
    path = release().save(tmp_path / "release")
    opened = nr.open_release(path)
    (margin,) = opened.manifest.margins
    assert (margin.of, margin.epsilon, margin.sensitivity) == (("job", "ill"), 1.0, 2)
    assert opened.manifest.spent == 1.0
    assert "spend epsilon = 1" in (path / "README.md").read_text()
    assert all(verdict.holds for verdict in nr.verify(path, policy([PAIR]), original=people()))
    (frame,) = opened.margins
    assert frame.columns == ["job", "ill", "count", "std_error"]
    assert frame.height == 30
    truth = people().group_by("job", "ill").len().with_columns(pl.col("ill").cast(pl.String))
    both = frame.join(truth, on=["job", "ill"], how="left").fill_null(0)
    assert (both["count"] != both["len"]).any()
    page = make_report(path)
    assert "Their total epsilon is 1 of everybody" in page.html
    assert page.content["published"]["epsilon_of_margins"] == 1.0


def test_a_csv_release_keeps_them_too(tmp_path: Path) -> None:
    opened = nr.open_release(release().save(tmp_path / "release", "csv"))
    assert opened.manifest.margins == release().manifest.margins


def test_a_release_without_margins_does_not_mention_them() -> None:
    assert "margins" not in nr.anonymize(people(), policy([])).manifest.model_dump()


@pytest.mark.parametrize(
    "change",
    [
        lambda margin: margin | {"counts": margin["counts"][:-1]},
        lambda margin: margin | {"of": ["job", "town", "ill"]},
        lambda margin: margin | {"of": ["job", "nothing"]},
        lambda margin: margin | {"of": ["job", "job"], "counts": [0] * 25},
        lambda margin: margin | {"epsilon": -1},
        lambda margin: margin | {"sensitivity": 1},
        lambda margin: margin | {"exact": margin["counts"]},
    ],
)
def test_a_margin_that_does_not_fit_its_columns_is_refused(change, tmp_path: Path) -> None:
    from noren.release.package import manifest_digest

    path = release().save(tmp_path / "release")
    package = json.loads((path / "datapackage.json").read_text())
    package["noren"]["margins"][0] = change(package["noren"]["margins"][0])
    block = {name: value for name, value in package["noren"].items() if name != "sha256"}
    package["noren"]["sha256"] = manifest_digest(block)
    (path / "datapackage.json").write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n")
    with pytest.raises(ReleaseError):
        nr.open_release(path)


def test_exact_counts_fail_the_auditors_check() -> None:
    made = release()
    counts = people().group_by("job", "ill").len()
    exact = {(row["job"], str(row["ill"])): row["len"] for row in counts.iter_rows(named=True)}
    cells = [
        exact.get((job, ill), 0) for job in made.column("job").domain.values for ill in made.column("ill").domain.values
    ]
    margin = made.manifest.margins[0].model_copy(update={"counts": tuple(cells)})
    forged = nr.Release(made.manifest.model_copy(update={"margins": (margin,)}), made.store)
    (verdict,) = [one for one in nr.verify(forged, policy([PAIR]), original=people()) if one.model == "margin-noise"]
    assert verdict.holds is False
    (verdict,) = [one for one in nr.verify(made, policy([]), original=people()) if one.model == "margins"]
    assert verdict.holds is False


@pytest.mark.parametrize(
    ("method", "cells", "own"), [("likelihood", 8, True), ("likelihood", 7, False), ("linear", 8, False)]
)
def test_only_a_likelihood_of_enough_cells_is_kept_where_the_margins_agree(method: str, cells: int, own: bool) -> None:
    """A biased estimate at which the margins find nothing wrong; the unbiased one is what else there is."""
    counts, ones = 10.0 * np.arange(cells), np.ones(cells)
    table = SimpleNamespace(method=method, counts=counts, noise=100 * ones)
    whole = SimpleNamespace(whole=[(None, Folded(counts, ones, 4.0))])
    unbiased = Weighed(counts + 5, ones, ones)
    found = Margins._likely(whole, table, unbiased)  # type: ignore[arg-type]
    assert found == pytest.approx(counts if own else counts + 5, abs=1e-6)


@pytest.mark.parametrize(("times", "holds"), [(1, True), (2, False)])
def test_a_margin_that_the_policy_asks_for_is_published_once(times: int, holds: bool) -> None:
    """Twice the same margin is twice the budget: the noise of the mean is less."""
    made = release()
    several = nr.Release(made.manifest.model_copy(update={"margins": made.manifest.margins * times}), made.store)
    (verdict,) = [one for one in nr.verify(several, policy([PAIR])) if one.model == "margins"]
    assert (verdict.holds, verdict.breaches) == (holds, 0 if holds else made.records)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ([{"of": ["job", "nobody"], "epsilon": 1}], "no column 'nobody'"),
        ([{"of": ["job", "job"], "epsilon": 1}], "named twice"),
        ([{"of": ["pid"], "epsilon": 1}], "has no values to count"),
        ([{"of": ["job"], "epsilon": 0}], "greater than 0"),
        ([{"of": ["job", "ill"], "epsilon": 1}, {"of": ["ill", "job"], "epsilon": 1}], "are already in"),
        ([{"of": "job", "epsilon": 1, "delta": 1}], "unknown key"),
    ],
)
def test_a_policy_says_what_is_wrong_with_its_margins(margins, said) -> None:
    with pytest.raises(PolicyError, match=said):
        policy(margins)


def test_general_columns_and_people_left_out_are_refused() -> None:
    roles = {"pid": "identifier", "town": "quasi-identifier", "job": "quasi-identifier", "ill": "plain"}
    rules = {"attributes": roles, "require": [nr.models.KAnonymity(k=900)], "margins": [{"of": "job", "epsilon": 1}]}
    with pytest.raises(PolicyError, match="not listed in the release"):
        nr.anonymize(people(), nr.Policy(**rules, method=nr.methods.Mondrian()))
    with pytest.raises(PolicyError, match="suppressed depends on everybody"):
        nr.Policy(**rules, method=nr.methods.Mondrian(suppression=0.1))


def test_people_with_several_rows_need_a_declared_bound() -> None:
    visits = pl.concat([people(600), people(600).head(200)])
    with pytest.raises(PolicyError, match=r"margins\[1\].rows"):
        policy([PAIR], people={"key": "pid"})
    with pytest.raises(PolicyError, match="200 people have more than rows = 1"):
        nr.anonymize(visits, policy([PAIR | {"rows": 1}], people={"key": "pid"}))
    made = nr.anonymize(visits, policy([PAIR | {"rows": 2}], people={"key": "pid"}))
    assert made.manifest.margins[0].sensitivity == 4
    assert made.manifest.margins[0].scale == pytest.approx(4.0)


# ---------------------------------------------------------------------- the register


def test_budgets_of_several_releases_add_up(tmp_path: Path) -> None:
    secret = tmp_path / "key.secret"
    Secret.create(secret)
    keyed = {"record_key": "pid", "secret": str(secret), "budget": 1.5}
    from noren.workflow.anonymize import run

    notes = run(people(), policy([PAIR], randomness=keyed)).facts.notes
    assert any("spend epsilon = 1, in total 1 over all releases" in note for note in notes)
    assert Register.open(secret).contents.spent == 1.0
    with pytest.raises(
        RequirementNotMet, match=r"have spent epsilon = 1; with 1 more the total would be 2, above the budget of 1\.5"
    ):
        nr.anonymize(people(), policy([PAIR], randomness=keyed))
    half = policy([{"of": "ill", "epsilon": 0.5}], randomness=keyed)
    assert any("1.5 over all releases" in note for note in run(people(), half).facts.notes)
    assert Register.open(secret).contents.spent == 1.5
    assert any("is not added up" in note for note in run(people(), policy([PAIR])).facts.notes)


# ---------------------------------------------------------------------- what it adds


def test_two_sources_are_weighed_by_their_variances() -> None:
    found = weigh(np.array([10.0]), np.array([4.0]), [Folded(np.array([16.0]), np.array([2.0]), 1.0)])
    assert found.counts[0] == pytest.approx((10 / 4 + 16 / 2) / (1 / 4 + 1 / 2))
    assert found.variance[0] == pytest.approx(1 / (1 / 4 + 1 / 2))
    assert found.fourth[0] == pytest.approx((2 / 3) ** 4 * 3 * 2)
    blind = weigh(np.array([10.0]), np.array([np.inf]), [Folded(np.array([16.0]), np.array([1.0]), 9.0)])
    assert (blind.counts[0], blind.variance[0]) == (16.0, 9.0)
    assert blind.quantile(0.95)[0] == pytest.approx(2.996 / np.sqrt(2), rel=0.03), "that of Laplace noise"


def test_margins_are_summed_over_what_is_not_asked_for() -> None:
    table = NoisedTable(("a", "b", "c"), np.arange(24.0).reshape(2, 3, 4), 5.0, 1.0)
    groups = np.array([0, -1, 0, 1])
    found = table.folded({"c": (groups, 2), "a": (np.arange(2), 2)})
    wanted = np.stack([table.counts[..., [0, 2]].sum(axis=(1, 2)), table.counts[..., 3].sum(axis=1)])
    assert found.counts == pytest.approx(wanted)
    assert found.cells.tolist() == [[6, 6], [3, 3]]


def test_whatever_a_margin_holds_is_estimated_with_smaller_errors() -> None:
    plain, made, frame = nr.anonymize(people(), policy([])), release(), people()
    for by, less in ((["ill"], 0.5), (["job", "ill"], 0.25)):
        wide, narrow = plain.estimate(by), made.estimate(by)
        assert narrow.frame["std_error"].mean() < less * wide.frame["std_error"].mean()
        assert "noised margins" in narrow.assumes
        assert narrow.diagnostics["margins"] == [{"of": ["job", "ill"], "epsilon": 1.0}]
    counted = made.count({"job": "cook", "ill": "0"})
    truth = frame.filter((pl.col("job") == "cook") & (pl.col("ill") == 0)).height
    assert abs(counted.count - truth) < 6.5 * (counted.std_error or 0)
    assert (counted.std_error or 9) < 4
    table = made.estimate(["town", "job", "ill"])
    assert table.diagnostics["raked_to_margins"] == [["job", "ill"]]
    pairs = table.frame.group_by("job", "ill").agg(pl.col("count").sum())
    asked = made.estimate(["job", "ill"]).frame.join(pairs, on=["job", "ill"])
    assert (asked["count"] * (N / asked["count"].sum()) - asked["count_right"]).abs().max() < 0.5
    assert made.mean("ill", by="job")[0]["std_error"] < 0.5 * plain.mean("ill", by="job")[0]["std_error"]
    one, other = made.regress("ill ~ C(job)").frame, plain.regress("ill ~ C(job)").frame
    assert (one["std_error"] < 0.7 * other["std_error"]).all()


def test_a_condition_that_no_margin_holds_leaves_it_aside() -> None:
    found = release().estimate("ill", where={"town": "Ulm"})
    assert "margins" not in found.diagnostics
    assert "margins" in release().estimate("ill", where={"job": ["cook", "nurse"]}).diagnostics


@pytest.mark.slow
def test_intervals_with_margins_cover() -> None:
    """100 releases of 6 + 30 cells, 5 means and a slope: the share that covers, by kind of answer.

    Cells of one release are nearly independent; as if each release were one trial of its mean coverage, whose variance
    is at most 0.05 * 0.95, the mean of 100 lies below 0.95 - 6.5 * 0.0218 less than once in 10^10 times. For the cells
    the bound is that of 1,000 trials.
    """
    rng = np.random.default_rng(8)
    found: dict[str, list[float]] = {"one": [], "two": [], "mean": [], "slope": []}
    rules = policy([{"of": ["job", "ill"], "epsilon": 0.3}])
    x = np.arange(5)
    for _ in range(100):
        job = rng.integers(0, 5, 1_500)
        ill = np.minimum(rng.poisson(0.6 + 0.4 * job), 5)
        names = np.array(["cook", "clerk", "miner", "nurse", "smith"])
        frame = pl.DataFrame({"pid": np.arange(1_500), "town": ["Ulm"] * 1_500, "job": names[job], "ill": ill})
        made = nr.anonymize(frame, rules)
        for kind, by in (("one", ["ill"]), ("two", ["job", "ill"])):
            counts = {tuple(map(str, row[:-1])): row[-1] for row in frame.group_by(by).len().iter_rows()}
            table = made.estimate(by)
            inside = [row["low"] <= counts.get(tuple(row[name] for name in by), 0) <= row["high"] for row in table]
            found[kind].append(float(np.mean(inside)))
        truth = dict(frame.group_by("job").agg(pl.col("ill").mean()).iter_rows())
        found["mean"].append(np.mean([r["low"] <= truth[r["job"]] <= r["high"] for r in made.mean("ill", by="job")]))
        values = {"job": dict(zip(names.tolist(), x.tolist(), strict=True))}
        line = made.regress("ill ~ job", values=values).frame.row(1, named=True)
        found["slope"].append(line["low"] <= 0.3917 <= line["high"])
    assert min(np.mean(found["one"]), np.mean(found["two"])) > 0.95 - 6.5 * np.sqrt(0.0475 / 1_000)
    assert min(np.mean(found["mean"]), np.mean(found["slope"])) > 0.95 - 6.5 * np.sqrt(0.0475 / 100)
    print({kind: round(float(np.mean(each)), 4) for kind, each in found.items()})


def test_a_collector_has_no_margins() -> None:
    rules = nr.Policy(
        attributes={"job": nr.sensitive(values=["cook", "clerk", "smith"])},
        require=[nr.models.FrequencyLDiversity(on="job", l=2)],
        margins=[{"of": "job", "epsilon": 1}],
    )
    with pytest.raises(PolicyError, match="noised margins are not possible"):
        nr.Collector(rules)


def test_a_margin_is_of_four_columns_at_most() -> None:
    said = {"epsilon": 1.0, "sensitivity": 2, "counts": (1,)}
    assert PublishedMargin(of=tuple("abcd"), **said).of == tuple("abcd")
    with pytest.raises(ValueError, match="at most 4"):
        PublishedMargin(of=tuple("abcde"), **said)
