"""What the rule of a method tells beyond the classes it publishes: whom it moved, what it refused to cut."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.methods import METHODS

ROLES = {"age": "quasi-identifier", "town": "quasi-identifier", "ill": "sensitive"}
ILLS = ("Angina", "Burn", "Cold", "Flu", "Gout")


def dominated(n: int = 1_200, seed: int = 5) -> pl.DataFrame:
    """Few different people, and in most groups of equal ones a secret that is too common."""
    rng = np.random.default_rng(seed)
    age, town = rng.integers(0, 20, n), rng.integers(0, 6, n)
    own = (age * 7 + town * 3) % len(ILLS)
    ill = np.where(rng.random(n) < 0.45, own, rng.integers(0, len(ILLS), n))
    towns = np.array(["Aalen", "Bonn", "Celle", "Dorsten", "Erfurt", "Fulda"])
    return pl.DataFrame({"age": 20 + age, "town": towns[town], "ill": np.array(ILLS)[ill]})


def policy(method: object, l: int = 2, *more: object) -> nr.Policy:  # noqa: E741
    asked = [nr.models.FrequencyLDiversity(on="ill", l=l), *more]
    return nr.Policy(attributes=ROLES, require=asked, method=method, mechanism="ignored")


def attacked(table: pl.DataFrame, rules: nr.Policy):
    release = nr.anonymize(table, rules)
    (found,) = nr.attack(release, "minimality", original=table, policy=rules)
    return release, found


@pytest.mark.parametrize("method", ["sweep", "three-phase"])
def test_people_who_were_moved_have_the_dominant_secret(method: str) -> None:
    """What was published: nobody believes more than 1/2. What the rule tells: those who left all had the pillar."""
    table = dominated()
    _, found = attacked(table, policy(method))
    plain, told = found.scenarios
    assert found.facts["moved_of_one_secret"] > 20
    assert found.facts["moved_right"] == found.facts["moved_of_one_secret"]
    assert told.summary["gains"] > 0
    assert told.summary["above_promise"] > plain.summary["above_promise"]
    assert told.summary["mean_truth_belief"] > plain.summary["mean_truth_belief"]


def test_every_method_says_what_its_rule_tells() -> None:
    """A new method says how an adversary replays it, or why there is nothing to replay."""
    for name, kind in METHODS.items():
        rule = kind(name=name).mechanism()
        assert rule is not None, name
        assert rule.says, name


CLASSES = sorted(name for name, kind in METHODS.items() if kind.forms_classes and name not in ("suppress",))
"""Methods of classes that serve one secret; `suppress` is about terms."""
SILENT = ("anatomy", "rating", "m-invariance", "auto")


def asked(name: str) -> list[object]:
    k = ("mondrian", "incognito", "microaggregation", "local-suppression", "hilbert")
    return [nr.models.KAnonymity(k=4)] if name in k else []


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in SILENT])
def test_the_attack_knows_the_rule_of_every_method(name: str) -> None:
    """Beliefs are distributions, they prove right about as often as they say, and the rule is named."""
    method = METHODS[name](name=name, **({"blind": False} if name == "hilbert" else {}))
    table, rules = dominated(800), policy(method, 2, *asked(name))
    _, found = attacked(table, rules)
    assert found.facts["method"] == name
    assert found.facts["rule"] == method.mechanism().says
    told = found.scenarios[1]
    believed, right = told.frame["belief"].to_numpy(), told.frame["right"].to_numpy()
    assert (believed <= 1 + 1e-9).all()
    sure = believed > 0.55
    if sure.sum() >= 100:
        slack = 6.1 / np.sqrt(sure.sum())  # an error below 1e-9 for independent people, and as much for the model
        assert abs(believed[sure].mean() - right[sure].mean()) < slack


def test_the_attack_and_the_requirement_know_who_stayed_behind_under_closeness() -> None:
    table, close = dominated(800), nr.models.TCloseness(on="ill", t=0.15)
    rules = nr.Policy(attributes=ROLES, require=[close], method="mondrian")
    _, found = attacked(table, rules)
    assert found.facts["people_of_overlapping_classes"] > 100
    most = found.scenarios[1].summary["max_belief"]
    assert most < 0.9
    for limit, holds in ((0.9, True), (0.2, False)):
        asked = [close, nr.models.Mechanism(on="ill", most=limit)]
        strict = nr.Policy(attributes=ROLES, require=asked, method="mondrian")
        if holds:
            assert all(verdict.holds for verdict in nr.anonymize(table, strict).verdicts)
        else:
            with pytest.raises(nr.errors.RequirementNotMet, match="mechanism on 'ill'"):
                nr.anonymize(table, strict)


@pytest.mark.parametrize("name", ["anatomy", "rating"])
def test_groups_drawn_at_random_tell_nothing_more(name: str) -> None:
    release = nr.anonymize(dominated(300), policy(name))
    with pytest.raises(nr.errors.QueryError, match="drawn at random"):
        nr.attack(release, "minimality")


def test_what_cannot_be_replayed_is_not_promised() -> None:
    """m-invariance: secrets take part in who is grouped with whom, so a bound on it is refused, not granted."""
    table = dominated(300)
    column = next(name for name, one in policy("anatomy").attributes.items() if one.role.needs_requirement)
    asked = [nr.models.MInvariance(on=column, m=2), nr.models.Mechanism(on=column, most=0.9)]
    attributes = policy("anatomy").attributes
    rules = nr.Policy(
        attributes=attributes, require=asked, method="m-invariance", dependence={"most": 1.0}, mechanism="ignored"
    )
    with pytest.raises(nr.NorenError, match="cannot be computed"):
        nr.anonymize(table, rules)


def test_auto_names_what_it_chose() -> None:
    table, rules = dominated(400), policy("auto")
    release, found = attacked(table, rules)
    (used,) = release.manifest.methods
    assert found.facts["method"] == used.chosen in METHODS


# ---------------------------------------------------------------- the requirement


def demanding(method: object, most: float) -> nr.Policy:
    return policy(method, 2, nr.models.Mechanism(on="ill", most=most))


@pytest.mark.parametrize("method", ["sweep", "three-phase"])
def test_a_release_whose_mechanism_tells_too_much_is_not_published(method: str, tmp_path) -> None:
    table = dominated(600)
    with pytest.raises(nr.errors.RequirementNotMet, match="mechanism on 'ill'"):
        nr.anonymize(table, demanding(method, 0.5), to=tmp_path / "release")
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize("method", ["mondrian", "hilbert"])
def test_blind_classes_hold_and_leave_nothing_to_conclude(method: str, tmp_path) -> None:
    table = dominated(600)
    rules = demanding({"name": method, "blind": True}, 0.5)
    release = nr.anonymize(table, rules, to=tmp_path / "release")
    (used,) = nr.open_release(tmp_path / "release").manifest.methods
    assert used.class_size >= 2
    assert release.verdicts[-1].achieved is None, "a figure that rests on the original is not published"
    with pytest.raises(nr.errors.QueryError, match="quasi-identifiers only"):
        nr.attack(release, "minimality", original=table, policy=rules)
    assert nr.verify(release, rules, original=table).hold
    assert [v.holds for v in nr.verify(release)] == [True, None], "only the holder can replay it"


@pytest.mark.parametrize("method", ["mondrian", "hilbert"])
def test_the_secrets_decide_the_size_of_blind_classes_and_nothing_else(method: str) -> None:
    """The same people with other secrets that need the same size are in the same classes, which stay whole where two
    secrets are protected."""
    from noren.methods.mechanism.refusals import repeatable
    from noren.workflow.prepare import prepare

    table = dominated(500).with_columns(job=pl.Series(["cook", "clerk"] * 250))
    other = table.with_columns(pl.col("ill").replace(dict(zip(ILLS, ILLS[::-1], strict=True))))
    both = [nr.models.FrequencyLDiversity(on="ill", l=2), nr.models.DistinctLDiversity(on="job", l=2)]
    rules = nr.Policy(attributes={**ROLES, "job": "sensitive"}, require=both, method={"name": method, "blind": True})
    plans = []
    for one in (table, other):
        records = prepare(one, rules).records
        plans.append(rules.methods[0].recode(records, rules.require, repeatable))
    assert plans[0].facts == plans[1].facts
    for name in ("age", "town"):
        assert (plans[0].treatments[name].data == plans[1].treatments[name].data).all()


def test_blind_with_people_and_missing_cells() -> None:
    table = dominated(500)
    rng = np.random.default_rng(1)
    visits = table.with_columns(
        who=pl.Series(rng.integers(0, 300, 500)),
        age=pl.when(pl.Series(rng.random(500) < 0.05)).then(None).otherwise(pl.col("age")),
    )
    for method in ("mondrian", "hilbert"):
        rules = nr.Policy(
            attributes={"who": "identifier", **ROLES},
            require=[nr.models.KAnonymity(k=3), nr.models.FrequencyLDiversity(on="ill", l=2)],
            people={"key": "who"},
            method={"name": method, "blind": True},
        )
        release = nr.anonymize(visits, rules)
        assert all(verdict.holds for verdict in release.verdicts)
        assert release.manifest.methods[0].class_size >= 3


def test_auto_and_compare_keep_to_what_the_mechanism_permits() -> None:
    table = dominated(500)
    release = nr.anonymize(table, demanding("auto", 0.5))
    assert release.manifest.methods[0].chosen not in ("sweep", "three-phase")
    assert all(verdict.holds for verdict in release.verdicts)
    found = {one.title: one for one in nr.compare(table, demanding("mondrian", 0.5))}
    assert "mechanism on ill" in str(found["three-phase"].failure)
    assert found["mondrian blind=true"].holds


# ---------------------------------------------------------------- terms


@pytest.mark.parametrize("options", [{"k": 2}, {"k": 2, "balance": {"generalisation": 0.3}}], ids=["search", "balance"])
def test_terms_that_could_have_stayed_were_never_there(options: dict[str, object]) -> None:
    """Beliefs move, and no term that the rule excludes was left out."""
    from noren.audit.minimality import term_requirements
    from noren.audit.targets import class_keys, searchable
    from noren.methods.mechanism.omissions import PublishedTerms
    from noren.models.term_check import linked_terms
    from noren.ragged import rows_in_order
    from tests.unit import term_world as world

    table, rules = world.table(120), world.policy(**options)
    release = nr.anonymize(table, rules)
    (found,) = nr.attack(release, "minimality", original=table, policy=rules)
    plain, told = found.scenarios
    assert found.target == ("signs",)
    assert plain.summary["gains"] == 0
    assert told.summary["gains"] > 0
    assert told.summary["max_belief"] <= 1 + 1e-9

    (((column,), model),) = term_requirements(release)
    known = column.column.known
    terms = linked_terms([(column, release.cells(["signs"])["signs"])], known)
    shown = PublishedTerms(terms, known, model, np.full(len(known.labels), 1 / len(known.labels)))
    true = [set(own or ()) for own in table["signs"].to_pylist()]
    had = np.array([[term in true[row] for term in known.terms] for row in release.frame()["row"].cast(int).to_list()])
    excluded = 0
    order, bounds = rows_in_order(class_keys(release, searchable(release)), release.rows)
    for begin, end in itertools.pairwise(bounds):
        rows = order[begin:end]
        could, breaks, _ = shown.put_back(rows)
        excluded += int((could & ~breaks).sum())
        assert not (could & ~breaks & had[rows]).any()
    assert excluded == found.facts["excluded"] > 0
