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
from noren.methods import METHODS
from noren.workflow.anonymize import run

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
    with pytest.raises(nr.errors.RequirementNotMet, match=r"belief on 'job': asked 0\.9"):
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
    from noren.workflow.settling import settled

    rules = policy()
    draft = settled(prepare(survey(), rules), rules)
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
