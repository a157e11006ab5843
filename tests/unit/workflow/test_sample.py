"""Sampling: an option of every release, drawn before any method sees a record."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from noren.errors import PolicyError
from noren.policy.policy import Policy
from noren.release.release import Release, open_release
from noren.sources.sample import SampledSource
from noren.sources.source import open_source
from noren.workflow.anonymize import run
from noren.workflow.verify import verify


def table(n: int = 6000) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "number": np.arange(n),
            "age": rng.integers(20, 60, n),
            "sex": rng.choice(["f", "m"], n),
            "disease": rng.choice(["flu", "cold", "hiv", "none"], n),
        }
    )


def policy(method: str, share: float | None = 0.3) -> Policy:
    asked = [{"model": "frequency-l-diversity", "on": "disease", "l": 2}]
    if method not in ("decoys", "anatomy"):
        asked.append({"model": "k-anonymity", "k": 5})
    return Policy(
        mechanism="ignored",
        attributes={
            "number": "identifier",
            "age": "quasi-identifier",
            "sex": "quasi-identifier",
            "disease": "sensitive",
        },
        require=asked,
        method={"name": method},
        sample={} if share is None else {"share": share},
    )


def test_every_pass_sees_the_same_records_whatever_the_columns() -> None:
    source = SampledSource(open_source(table()), 0.3)
    once = [b.column("number").to_pylist() for b in source.batches(["number"])]
    again = [b.column("number").to_pylist() for b in source.batches(["age", "number"])]
    assert once == again
    other = SampledSource(open_source(table()), 0.3)
    assert once != [b.column("number").to_pylist() for b in other.batches(["number"])]


def test_records_are_drawn_alike_and_independently() -> None:
    """Eight standard deviations of two counts: a false alarm is below 1e-14."""
    n = 200_000
    source = SampledSource(open_source(pl.DataFrame({"number": np.arange(n)})), 0.1)
    drawn = np.concatenate([batch.column("number").to_numpy() for batch in source.batches(["number"])])
    assert abs(len(drawn) - 0.1 * n) < 8 * np.sqrt(n * 0.09)
    pairs = int((np.diff(np.sort(drawn)) == 1).sum())
    assert abs(pairs - 0.01 * n) < 8 * np.sqrt(0.012 * n)


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("method", ["decoys", "mondrian", "anatomy", "microaggregation", "local-suppression"])
def test_a_sample_is_verified_and_says_its_share(method: str, file_format, tmp_path) -> None:
    data, asked = table(), policy(method)
    outcome = run(data, asked, to=tmp_path / "r", file_format=file_format)
    release = open_release(tmp_path / "r")
    assert release.manifest.sample == 0.3
    assert 1500 < release.records < 2100
    assert any("random sample" in note for note in outcome.facts.notes)
    assert all(verdict.holds for verdict in verify(release, asked, original=data))
    assert release.estimate(["disease"]).frame["count"].sum() == pytest.approx(release.records, abs=1)
    wide = release.count({"disease": "flu"}, population=True) if method == "decoys" else None
    assert wide is None or wide.high - wide.low > 0


def test_a_share_that_is_not_the_policys_fails(tmp_path) -> None:
    run(table(), policy("mondrian"), to=tmp_path / "r")
    for share in (None, 0.5):
        found = verify(tmp_path / "r", policy("mondrian", share))
        assert [v.model for v in found if not v.holds] == ["sample-share"]
    small = verify(tmp_path / "r", policy("mondrian"), original=table().head(2000))
    assert "sample-size" in [v.model for v in small if not v.holds]


def test_the_section_is_written_and_checked() -> None:
    asked = policy("mondrian")
    assert Policy.parse(asked.to_toml()).sample.share == 0.3
    assert "[sample]" not in policy("mondrian", None).to_toml()
    for share in (0, 1, 1.5, "half"):
        with pytest.raises(PolicyError, match="sample"):
            policy("mondrian", share)


@pytest.mark.parametrize(("whole", "near"), [(10, True), (11, True), (12, False)])
def test_a_sample_of_nearly_everybody_may_lack_few(whole: int, near: bool) -> None:
    """Ten of twelve at a share of 0.999: two are missing where 0.012 are expected, 0.9 at eight deviations, and one."""
    rules = {"attributes": {"disease": {"role": "sensitive", "values": ["flu", "cold", "hiv"]}}, "method": "decoys"}
    asked = [{"model": "frequency-l-diversity", "on": "disease", "l": 2}]
    people = pl.DataFrame({"disease": ["flu", "cold", "hiv"] * 4})
    release = run(people.head(10), Policy(require=asked, **rules)).release
    sampled = Release(release.manifest.model_copy(update={"sample": 0.999}), release.store)
    found = [one for one in verify(sampled, original=people.head(whole)) if one.model == "sample-size"]
    assert [one.holds for one in found] == [near]


def test_one_person_who_is_not_covered_is_everybody() -> None:
    asked = [{"model": "frequency-l-diversity", "on": "disease", "l": 2}]
    domain = {"role": "sensitive", "values": ["flu", "cold", "hiv"]}
    rules = Policy(mechanism="ignored", attributes={"disease": domain}, require=asked, method="decoys")
    release = run(pl.DataFrame({"disease": ["flu"]}), rules).release
    (shown,) = release.frame()["disease"].to_list()
    (other,) = {"flu", "cold", "hiv"} - set(shown)
    (found,) = [
        one for one in verify(release, original=pl.DataFrame({"disease": [other]})) if one.model == "truth-in-set"
    ]
    assert (found.holds, found.achieved, found.breaches) == (False, 0.0, 1)
