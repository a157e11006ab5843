"""Informed belief as a requirement: what its check finds, what a policy makes of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.designs import DecoyDesign, InformedDesign, SemanticDesign
from noren.models import EntropyLDiversity, FrequencyLDiversity, InformedBelief
from noren.models.base import Evidence
from noren.models.verdict import Verdict
from noren.statements import SetCells, Statement
from tests.statements import set_column

VALUES = tuple("abcdef")
SHARES = (0.3, 0.25, 0.2, 0.1, 0.1, 0.05)
PRIOR = dict(zip(VALUES, SHARES, strict=True))


def people(n: int = 3000, seed: int = 5) -> pl.DataFrame:
    return pl.DataFrame({"x": np.random.default_rng(seed).choice(VALUES, n, p=SHARES)})


def policy(*more: dict[str, object], **given: object) -> nr.Policy:
    asked = {"model": "informed-belief", "on": "x", "most": 0.6, "prior": PRIOR} | given
    column = {"role": "sensitive", "values": VALUES}
    return nr.Policy(attributes={"x": column}, require=[asked, *({"on": "x", **one} for one in more)])


def verdict(model: nr.models.Model, statement: Statement, sets: list[list[int]]) -> Verdict:
    check = model.check(statement, Evidence({"x": statement}, {}))
    check.observe({"x": SetCells.from_codes(statement.d, np.array(sets))})
    return check.verdict()


# ---------------------------------------------------------------- the check


def test_a_belief_is_bayes_rule_on_the_published_likelihood() -> None:
    """Uniform decoys: the odds in a set are those of the shares. {a, f}: 0.3 / 0.35; {b, c}: 0.25 / 0.45."""
    shares = dict(zip("012345", SHARES, strict=True))
    model = InformedBelief(on="x", most=0.6, prior=shares)
    found = verdict(model, set_column("x", 6, DecoyDesign(d=6, eta=2)), [[0, 5], [1, 2], [1, 2]])
    assert found.achieved == pytest.approx(0.3 / 0.35)
    assert (found.holds, found.records, found.breaches) == (False, 3, 1)
    odds = 2 * 0.3 / 0.05
    assert f"{odds / (1 + odds):.4g} if their odds" in found.statement
    assert "values equally likely" in found.statement
    assert verdict(model, set_column("x", 6, DecoyDesign(d=6, eta=2)), [[1, 2]]).holds is True


def test_values_outside_a_set_count_where_it_may_lack_the_truth() -> None:
    design = DecoyDesign(d=6, eta=2, p=0.5)
    shares = dict(zip("012345", SHARES, strict=True))
    inside, outside = design.kappa_in, design.kappa_out
    whole = inside * 0.35 + outside * 0.65
    found = verdict(InformedBelief(on="x", most=0.6, prior=shares), set_column("x", 6, design), [[0, 5]])
    assert found.achieved == pytest.approx(0.3 * inside / whole)
    assert found.achieved <= design.worst_under(np.array(SHARES)) + 1e-12


def test_a_share_above_the_bound_may_stay_but_not_grow() -> None:
    shares = {"0": 0.8, "1": 0.15, "2": 0.05}
    model = InformedBelief(on="x", most=0.6, prior=shares)
    even = verdict(model, set_column("x", 3, DecoyDesign(d=3, eta=3)), [[0, 1, 2]])
    assert even.holds is True
    assert verdict(model, set_column("x", 3, DecoyDesign(d=3, eta=2)), [[0, 1]]).holds is False


def test_a_set_that_the_design_never_draws_is_no_evidence_of_safety() -> None:
    far = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    design = SemanticDesign.make("uniform-sets", far, 2, 2)
    model = InformedBelief(on="x", most=0.9, prior=dict.fromkeys("012345", 1.0))
    assert verdict(model, set_column("x", 6, design), [[1, 3]]).holds is True
    found = verdict(model, set_column("x", 6, design), [[1, 2]])
    assert (found.holds, found.achieved) == (False, 1.0)


def test_parts_merge() -> None:
    shares = dict(zip("012345", SHARES, strict=True))
    statement = set_column("x", 6, DecoyDesign(d=6, eta=2))
    model = InformedBelief(on="x", most=0.6, prior=shares)
    parts = []
    for sets in ([[0, 5]], [[1, 2], [0, 1]]):
        parts.append(model.check(statement, Evidence({"x": statement}, {})))
        parts[-1].observe({"x": SetCells.from_codes(6, np.array(sets))})
    parts[0].merge(parts[1])
    assert parts[0].verdict() == verdict(model, statement, [[0, 5], [1, 2], [0, 1]])


# ---------------------------------------------------------------- a release


def test_a_release_keeps_the_bound_and_lets_counts_be_estimated() -> None:
    table = people()
    release = nr.anonymize(table, policy())
    design = release.designs["x"]
    assert isinstance(design, InformedDesign)
    assert (design.eta, design.most) == (2, 0.6)
    assert [one.holds for one in nr.verify(release, original=table)] == [True, True]
    assert nr.verify(release)[0].achieved == pytest.approx(0.6)
    found = release.estimate("x").frame["count"].to_numpy()
    truth = table["x"].value_counts().sort("x")["count"].to_numpy()
    error = np.square((found - truth) / len(table)).sum()
    assert error <= 25 * design.error() / len(table)  # Markov's inequality would allow one failure in 25; it is seeded


def test_with_frequency_diversity_who_believes_all_values_alike_is_bounded_too() -> None:
    release = nr.anonymize(people(), policy({"model": "frequency-l-diversity", "l": 3}))
    assert isinstance(release.designs["x"], DecoyDesign)
    assert release.designs["x"].eta == 4  # {a, d, f} would leave a with 0.3 / 0.45 = 0.67, {a, d, e, f} with 0.55
    assert all(one.holds for one in nr.verify(release))


def test_with_distinct_diversity_sets_are_larger_and_members_believed_alike() -> None:
    release = nr.anonymize(people(), policy({"model": "distinct-l-diversity", "l": 3}))
    assert (release.designs["x"].eta, release.designs["x"].most) == (3, 1 / 3)  # type: ignore[attr-defined]
    assert nr.verify(release)[0].achieved == pytest.approx(1 / 3)


def test_with_local_privacy_sets_may_lack_the_truth() -> None:
    release = nr.anonymize(people(), policy({"model": "local-privacy", "epsilon": 1.5}))
    assert release.designs["x"].epsilon <= 1.5
    assert all(one.holds for one in nr.verify(release))


@pytest.mark.parametrize("model", [FrequencyLDiversity, EntropyLDiversity])
def test_uneven_sets_are_not_as_diverse_as_they_are_large(model: type[nr.models.Model]) -> None:
    """Somebody who believed all values alike believes a rare member of an informed set more than 1/2."""
    release = nr.anonymize(people(), policy())
    asked = nr.Policy(attributes={"x": {"role": "sensitive", "values": VALUES}}, require=[model(on="x", l=2)])  # type: ignore[call-arg]
    found = nr.verify(release, asked)[0]
    assert found.holds is False
    assert found.achieved == pytest.approx(1 / release.designs["x"].worst_belief(), abs=1e-6)  # type: ignore[operator]


# ---------------------------------------------------------------- where shares come from


def test_shares_are_read_from_a_file_and_written_out(tmp_path: Path) -> None:
    (tmp_path / "shares.csv").write_text("value,share\n" + "".join(f"{v},{s}\n" for v, s in PRIOR.items()))
    text = (
        policy()
        .to_toml()
        .replace(f"prior = {{ {', '.join(f'{v} = {s}' for v, s in PRIOR.items())} }}", 'prior = "shares.csv"')
    )
    assert "shares.csv" in text
    (tmp_path / "policy.toml").write_text(text)
    found = nr.Policy.load(tmp_path / "policy.toml")
    assert found.require == policy().require
    assert nr.Policy.parse(found.to_toml()).require == found.require


@pytest.mark.parametrize(
    "text", ["", "value,share\n", "value,share\na,0\n", "value,share\na,x\n", "value,share\na,1,2\n",
             "value,share\na,1\na,1\n", "value,share\na,nan\n", "value,share\na,inf\n"],
)  # fmt: skip
def test_a_file_that_lists_no_shares_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    path.write_text(text)
    with pytest.raises(nr.errors.PolicyError, match=r"require\[1\].prior: .* file of shares") as caught:
        policy(prior=str(path))
    assert all(problem.hint for problem in caught.value.problems)


def test_an_older_release_lends_its_estimate(tmp_path: Path) -> None:
    older = nr.anonymize(people(2000, seed=8), policy(), to=tmp_path / "older")
    found = policy(prior=str(tmp_path / "older")).require[0]
    estimate = older.estimate("x").frame
    assert found.prior == dict(zip(VALUES, (estimate["count"] + 0.5).to_list(), strict=True))  # type: ignore[attr-defined]
    assert nr.verify(nr.anonymize(people(), nr.Policy(**policy().model_dump() | {"require": [found]})))[0].holds


def test_noised_margins_of_an_older_release_are_paid_for(tmp_path: Path) -> None:
    pytest.importorskip("opendp")
    given = policy()
    margins = nr.Policy(attributes=given.attributes, require=given.require, margins=[{"of": ["x"], "epsilon": 1.0}])
    older = nr.anonymize(people(), margins, to=tmp_path / "older")
    counts = older.estimate("x").frame["count"].to_numpy()
    assert older.manifest.spent == 1.0
    found = policy(prior=str(tmp_path / "older")).require[0]
    assert isinstance(found, InformedBelief)
    assert isinstance(found.prior, dict)
    assert [*found.prior.values()] == pytest.approx((counts + 0.5).tolist())


# ---------------------------------------------------------------- refusals


def test_the_tables_own_distribution_is_refused() -> None:
    table = people()
    counts = dict(table["x"].value_counts().iter_rows())
    rounded = {value: round(count / len(table), 4) for value, count in counts.items()}
    for own in (counts, rounded):
        with pytest.raises(nr.errors.PolicyError, match="the prior is the table's own distribution") as caught:
            nr.anonymize(table, policy(prior=own))
        assert "noised margins" in caught.value.problems[0].hint


def test_equal_shares_are_nobodys_own() -> None:
    table = pl.DataFrame({"x": [*VALUES] * 10})
    release = nr.anonymize(table, policy(prior=dict.fromkeys(VALUES, 1.0)))
    assert nr.verify(release)[0].holds is True


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"most": 0.3}, "one value has a public share of 0.3, so with most = 0.3 its count could not be recovered"),
        ({"most": 0.2}, "one value has a public share of 0.3"),
        ({"prior": {"a": 1.0, "b": 1.0}}, "the prior lacks shares for 4 of the 6 values"),
    ],
)
def test_what_cannot_be_met_is_refused_with_a_remedy(given: dict[str, object], message: str) -> None:
    with pytest.raises(nr.errors.PolicyError, match=message) as caught:
        nr.anonymize(people(), policy(**given))
    assert all(problem.hint for problem in caught.value.problems)


def test_sets_of_the_whole_domain_are_no_answer() -> None:
    with pytest.raises(nr.errors.PolicyError, match="no sets over 6 values meet"):
        nr.anonymize(people(), policy({"model": "frequency-l-diversity", "l": 5}, most=0.32))


def test_a_file_that_nobody_read_is_no_prior() -> None:
    model = InformedBelief(on="x", most=0.6, prior="shares.csv")
    with pytest.raises(nr.errors.ModelDoesNotApply, match="has not been read"):
        model.check(set_column("x", 6, DecoyDesign(d=6, eta=2)), Evidence({}, {}))
