"""What several columns tell together: no cell says much, and all cells of a record say nearly everything.

The table is like a survey: eight equally common jobs, and five answers that go with the job without fixing it. From a
person's own set of three jobs nobody is sure; from all sets of the record many are.
"""

from __future__ import annotations

import functools

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.designs import DecoyDesign
from noren.errors import RequirementNotMet
from noren.methods import METHODS
from noren.models.base import Evidence
from noren.statements import SetCells, concat
from noren.workflow.anonymize import run
from tests.statements import set_column

N = 1_500
JOBS = tuple(f"job{i}" for i in range(8))
ANSWERS = tuple(f"answer{i}" for i in range(5))
SURE = 0.9


@functools.cache
def survey(n: int = N, seed: int = 5) -> pl.DataFrame:
    """Everybody's job, and five answers that are those of the job seven times in ten."""
    rng = np.random.default_rng(seed)
    job = rng.integers(0, len(JOBS), n)
    columns = {"job": [JOBS[i] for i in job]}
    for at, name in enumerate(ANSWERS):
        usual = np.random.default_rng(at).permutation(len(JOBS))[job]
        given = np.where(rng.random(n) < 0.7, usual, rng.integers(0, len(JOBS), n))
        columns[name] = [f"{name}-{i}" for i in given]
    return pl.DataFrame(columns)


def policy(*more: object, **parts: object) -> nr.Policy:
    """Sets of three for every column, and whatever else is asked for."""
    columns = ("job", *ANSWERS)
    kept = {"attributes": dict.fromkeys(columns, "sensitive-quasi-identifier"), "dependence": {"most": 1.0}}
    return nr.Policy(require=[nr.models.FrequencyLDiversity(on=columns, l=3), *more], **(kept | parts))


def believing(most: float, **parts: object) -> nr.models.Belief:
    return nr.models.Belief(on="job", most=most, **parts)


def test_all_sets_together_tell_what_the_own_set_does_not():
    verdicts = run(survey(), policy(believing(0.999999))).facts.verdicts
    release = nr.anonymize(survey(), policy())
    asked = [believing(SURE, given="own"), believing(SURE)]
    own, everything = nr.verify(release, policy(asked[0])), nr.verify(release, policy(asked[1]))
    assert [v.breaches for v in own if v.model == "belief"] == [0]
    (found,) = [v for v in everything if v.model == "belief"]
    assert found.holds is False
    assert found.breaches > 0.2 * N
    assert found.basis == "an estimate from the release"
    assert all(verdict.holds for verdict in verdicts)


def test_a_belief_that_is_too_firm_publishes_nothing(tmp_path):
    target = tmp_path / "release"
    with pytest.raises(nr.errors.RequirementNotMet, match=r"belief on 'job': required 0\.9"):
        nr.anonymize(survey(), policy(believing(SURE)), to=target)
    assert not target.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_share_of_the_people_may_be_excepted():
    allowed = nr.anonymize(survey(), policy(believing(SURE, share=0.85)))
    (found,) = [v for v in allowed.verdicts if v.model == "belief"]
    assert found.holds
    assert found.achieved <= SURE
    with pytest.raises(nr.errors.RequirementNotMet):
        nr.anonymize(survey(), policy(believing(SURE, share=0.2)))


def test_beliefs_prove_as_right_as_they_are_firm():
    """Otherwise the figure would frighten, or soothe, for nothing."""
    from noren.estimates import believed
    from noren.workflow.dependence import _sampled
    from noren.workflow.prepare import prepare
    from noren.workflow.settling import settle_draft

    rules = policy()
    draft = settle_draft(prepare(survey(), rules), rules)
    truth, cells = _sampled(draft)
    found = believed("job", draft.statements, cells, truth=truth["job"])
    assert found is not None
    assert found.right is not None
    for low, high in ((0.3, 0.6), (0.6, 0.9), (0.9, 1.0)):
        some = (found.belief >= low) & (found.belief <= high)
        error = 6 * np.sqrt(0.25 / some.sum())
        assert abs(found.right[some].mean() - found.belief[some].mean()) < error + 0.03


def test_columns_that_do_not_go_together_tell_nothing():
    rng = np.random.default_rng(8)
    strangers = pl.DataFrame({name: [f"v{i}" for i in rng.integers(0, 8, N)] for name in ("job", *ANSWERS)})
    release = nr.anonymize(strangers, policy(believing(SURE)))
    (found,) = [v for v in release.verdicts if v.model == "belief"]
    assert found.holds
    assert found.achieved < SURE


def test_large_domains_are_not_passed_over():
    """Three codings of 120 occupations, each in sets of three: together they leave one."""
    rng = np.random.default_rng(2)
    code = rng.integers(0, 120, 4_000)
    columns = {
        name: [f"{name}{i}" for i in np.random.default_rng(at).permutation(120)[code]] for at, name in enumerate("abc")
    }
    rules = nr.Policy(
        mechanism="ignored",
        attributes=dict.fromkeys("abc", "sensitive-quasi-identifier"),
        require=[nr.models.FrequencyLDiversity(on=("a", "b", "c"), l=3), nr.models.Belief(on="a", most=SURE)],
        dependence={"most": 1.0},
    )
    with pytest.raises(nr.errors.RequirementNotMet, match="belief on 'a'"):
        nr.anonymize(pl.DataFrame(columns), rules)


# ---------------------------------------------------------------------- every method

PLACES = tuple(f"place{i}" for i in range(6))


@functools.cache
def patients() -> pl.DataFrame:
    """Places that nearly tell the illness."""
    rng = np.random.default_rng(4)
    place = rng.integers(0, len(PLACES), 600)
    ill = np.where(rng.random(600) < 0.93, place, rng.integers(0, len(PLACES), 600))
    return pl.DataFrame({"place": [PLACES[i] for i in place], "ill": [f"ill{i}" for i in ill]})


MADE_BY = {
    "pram": nr.models.TCloseness(on="ill", t=0.5),
    "local-suppression": nr.models.KAnonymity(k=3),
    "microaggregation": nr.models.KAnonymity(k=3),
}
"""What a method can serve that does not serve diversity."""
TERMS = {"suppress"}
"""Methods of sets of terms, of which `belief` does not speak."""


def made_by(name: str, *more: nr.models.Belief) -> nr.Policy:
    asked = MADE_BY.get(name, nr.models.DistinctLDiversity(on="ill", l=2))
    require = [asked, *more]
    if not asked.on:
        require.append(nr.models.DistinctLDiversity(on="ill", l=2))
    return nr.Policy(
        mechanism="ignored",
        attributes={"place": "quasi-identifier", "ill": "sensitive"},
        require=require,
        method={"name": name},
        dependence={"most": 1.0},
    )


@pytest.mark.parametrize("name", [name for name in METHODS if name not in TERMS])
def test_every_method_answers_for_what_its_columns_tell_together(name, tmp_path):
    """What a release claims is what a recipient finds, and a little less is refused."""
    release = nr.anonymize(patients(), made_by(name, nr.models.Belief(on="ill", most=0.9999, share=0.999)))
    (claimed,) = [v for v in release.verdicts if v.model == "belief"]
    (found,) = [v for v in nr.verify(release) if v.model == "belief"]
    assert claimed.holds
    assert found.achieved == claimed.achieved
    target = tmp_path / "release"
    with pytest.raises(nr.errors.RequirementNotMet, match="belief on 'ill'"):
        nr.anonymize(patients(), made_by(name, nr.models.Belief(on="ill", most=0.17)), to=target)
    assert not target.exists()


# ---------------------------------------------------------------- what two columns tell only together


def sums(d: int, n: int = 6_000, others: int = 0, telling: bool = False) -> pl.DataFrame:
    """A secret that is the sum of two columns modulo d (for d = 2 their parity): each of them alone tells nothing."""
    rng = np.random.default_rng(d)
    one, two = rng.integers(0, d, (2, n))
    columns = {"secret": (one + two) % d, "one": one, "two": two}
    for at in range(others):
        chance = rng.integers(0, d, n)
        columns[f"other{at}"] = np.where(rng.random(n) < 0.3, columns["secret"], chance) if telling else chance
    return pl.DataFrame({name: [f"{name}-{code}" for code in codes] for name, codes in columns.items()})


def knowing_the_rule(release: nr.Release) -> np.ndarray:
    """The largest belief about every secret of somebody who knows how the three columns go together."""
    cells = concat(list(release.batches()))
    likely = {}
    for name in ("secret", "one", "two"):
        distinct, of = cells[name].distinct()
        found = release.column(name).likelihood(distinct)
        dense = np.full((len(distinct), release.column(name).d), found.floor)
        dense[found.owner, found.value] = found.weight
        likely[name] = dense[of]
    d = release.column("secret").d
    rule = np.zeros((d, d, d))
    for a, b in np.ndindex(d, d):
        rule[(a + b) % d, a, b] = 1.0
    belief = np.einsum("ns,na,nb,sab->ns", likely["secret"], likely["one"], likely["two"], rule)
    return (belief / belief.sum(axis=1, keepdims=True)).max(axis=1)


DRAWN = {
    "sets of two": (5, nr.models.FrequencyLDiversity, {"l": 2}),
    "sets of three": (6, nr.models.FrequencyLDiversity, {"l": 3}),
    "changed values": (2, nr.models.TCloseness, {"t": 0.3}),
    "sets that may lack the truth": (3, nr.models.TCloseness, {"t": 0.4}),
}


@pytest.mark.parametrize("beside", ["nothing", "ten that tell nothing", "four that tell more"])
@pytest.mark.parametrize("way", DRAWN)
def test_a_parity_of_two_columns_does_not_escape_the_requirement(way: str, beside: str):
    """Whoever knows the rule believes above 0.8 for some people: the verdict must not say that nobody does."""
    d, model, asked = DRAWN[way]
    others = {"nothing": 0, "ten that tell nothing": 10, "four that tell more": 4}[beside]
    n = 20_000 if way == "sets of three" else 6_000  # which leave so much open that fewer people do not show the rule
    table = sums(d, n, others=others, telling="more" in beside)
    plain = {"attributes": dict.fromkeys(table.columns, "sensitive"), "dependence": {"most": 1.0}}
    require = [model(on=list(table.columns), **asked)]
    release = nr.anonymize(table, nr.Policy(require=require, **plain))
    firm = int((knowing_the_rule(release) > 0.8).sum())
    assert firm > 0
    asked_too = nr.Policy(require=[*require, nr.models.Belief(on="secret", most=0.8)], **plain)
    (found,) = [v for v in nr.verify(release, asked_too) if v.model == "belief"]
    assert found.holds is False, (found.achieved, firm)
    assert "in pairs" in found.statement


RULES = {
    "sum": lambda x, y: (x + y) % 6,
    "difference": lambda x, y: (x - y) % 6,
    "parity": lambda x, y: (x + y) % 2,
    "no rule": lambda x, y: np.random.default_rng([*x[:4], *y[:4]]).integers(0, 6, len(x)),
}


@pytest.mark.parametrize("secret", ["result", "one"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rule", RULES)
def test_sets_of_three_of_six_show_a_rule_to_whoever_looks_for_it(rule: str, seed: int, secret: str):
    """6,000 people: 10 to 25 of them are certain for somebody who knows the rule, and nobody is where there is none."""
    rng = np.random.default_rng(seed)
    one, two = rng.integers(0, 6, (2, 6_000))
    statements, cells = {}, {}
    for name, codes in {"one": one, "two": two, "result": RULES[rule](one, two)}.items():
        drawn = rng.random((6_000, 6))
        drawn[np.arange(6_000), codes] = -1
        statements[name] = set_column(name, 6, DecoyDesign(d=6, eta=3))
        cells[name] = SetCells.from_codes(6, np.sort(np.argsort(drawn, axis=1)[:, :3], axis=1))
    check = nr.models.Belief(on=secret, most=0.8).check(statements[secret], Evidence(statements, {}))
    check.observe(cells)
    found = check.verdict()
    assert found.holds is (rule == "no rule"), found.statement


@pytest.mark.parametrize(("d", "l"), [(4, 3), (8, 3), (8, 2)])
def test_columns_that_go_together_with_nothing_move_no_belief(d: int, l: int):  # noqa: E741
    rng = np.random.default_rng(d)
    names = ("secret", *(f"other{at}" for at in range(6)))
    table = pl.DataFrame({name: [f"{name}-{code}" for code in rng.integers(0, d, 3_000)] for name in names})
    rules = nr.Policy(
        attributes=dict.fromkeys(names, "sensitive"),
        require=[nr.models.FrequencyLDiversity(on=names, l=l), nr.models.Belief(on="secret", most=1 / l + 0.35)],
    )
    assert all(verdict.holds for verdict in nr.anonymize(table, rules).verdicts)


def test_many_weak_relations_are_read_together() -> None:
    """Sixteen columns of which each agrees with the secret in 44% of the records: none of them says much by itself."""
    rng = np.random.default_rng(16)
    truth = rng.integers(0, 4, 200)
    clues = [np.where(rng.random(200) < 0.25, truth, rng.integers(0, 4, 200)) for _ in range(16)]
    names = [f"clue{at}" for at in range(16)]
    columns = dict(zip(("secret", *names), (truth, *clues), strict=True))
    table = pl.DataFrame({name: [f"{name}-{code}" for code in codes] for name, codes in columns.items()})
    rules = nr.Policy(
        attributes={"secret": "sensitive"} | dict.fromkeys(names, "plain"),
        require=[nr.models.FrequencyLDiversity(on="secret", l=2), nr.models.Belief(on="secret", most=0.9)],
        dependence={"most": 1.0},
    )
    with pytest.raises(RequirementNotMet, match="belief on 'secret'"):
        nr.anonymize(table, rules)
