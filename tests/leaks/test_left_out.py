"""Who is missing from a release tells nothing: nobody is, or those who are meet every requirement as one class.

Judged here from first principles by a reader who has the original and knows every member by a row number that is
published for the purpose.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.methods import METHODS
from noren.methods.base import ClassMethod
from noren.workflow.anonymize import run
from tests.contracts.paints import PAINTS

N = 400
STATUS = ("Married", "Single", "Divorced", "Widowed", "Apart")
GENERAL = [name for name, kind in METHODS.items() if issubclass(kind, ClassMethod)]
KEEP_ALL = ("local-suppression", "microaggregation", "m-invariance")
"""Methods that leave out nobody, and say so."""
EVEN = (0.32, 0.28, 0.2, 0.12, 0.08)
SKEWED = (0.44, 0.26, 0.15, 0.1, 0.05)


def table(shares: tuple[float, ...], seed: int = 0, n: int = N) -> pa.Table:
    """People who can be found by age, sex and town, some of them far from all others, with a secret status."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    age[: n // 40] = rng.integers(85, 99, n // 40)
    signs = [";".join(PAINTS.terms[c] for c in np.flatnonzero(rng.random(5) < 0.4)) for _ in range(n)]
    columns: dict[str, Any] = {
        "row": np.arange(n),
        "age": age,
        "sex": rng.choice(["f", "m"], n).tolist(),
        "town": rng.choice(["Ulm", "Bonn", "Kiel", "Trier"], n, p=[0.4, 0.3, 0.29, 0.01]).tolist(),
        "status": rng.choice(STATUS, n, p=shares).tolist(),
        "signs": signs,
    }
    return pa.table(columns)


def policy(method: str, l: int = 2, suppression: float = 0.1, k: int = 4, **more: Any) -> nr.Policy:  # noqa: E741
    require: list[dict[str, Any]] = [{"model": "frequency-l-diversity", "on": "status", "l": l}]
    if method not in ("anatomy", "rating"):
        require.append({"model": "k-anonymity", "k": k})
    options: dict[str, Any] = {"name": method} | ({} if method in KEEP_ALL else {"suppression": suppression})
    signs: Any = "plain"
    if method == "suppress":
        signs = {"role": "quasi-sensitive", "separator": ";", "knowledge": PAINTS}
        require.append({"model": "qs-diversity", "on": "signs", "c": 2.0, "l": 2})
        options |= {"generalise": "incognito", "nodes": 200}
    quasi = dict.fromkeys(("age", "sex", "town"), "quasi-identifier")
    attributes = {"row": "plain", **quasi, "status": "sensitive", "signs": signs}
    return nr.Policy(
        mechanism="ignored", attributes=attributes, require=require, method=options, dependence={"most": 1.0}, **more
    )


def missing(release: nr.Release, original: pa.Table) -> list[dict[str, Any]]:
    there = set(release.frame()["row"].cast(int).to_list())
    return [person for person in original.to_pylist() if person["row"] not in there]


def safe(people: list[dict[str, Any]], rules: nr.Policy) -> bool:
    """No status makes up more than 1/l of them, and they are k."""
    if not people:
        return True
    asked = {model.model: model.parameters() for model in rules.require}
    most = max(Counter(person["status"] for person in people).values())
    size = asked.get("k-anonymity", {"k": 1})["k"]
    return Fraction(most, len(people)) <= Fraction(1, asked["frequency-l-diversity"]["l"]) and len(people) >= size


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize(("shares", "l", "suppression"), [(SKEWED, 3, 0.3), (EVEN, 2, 0.1), (EVEN, 2, 0.02)])
def test_those_who_are_missing_are_none_or_a_class_that_holds(method, shares, l, suppression):  # noqa: E741
    """Before, all who vanished were Married where l = 3 was asked of a status that 44% share."""
    original, rules = table(shares), policy(method, l, suppression)
    try:
        outcome = run(original, rules)
    except nr.errors.RequirementNotMet:
        return  # nothing is published
    gone = missing(outcome.release, original)
    assert len(gone) == outcome.facts.suppressed <= suppression * N
    assert safe(gone, rules), Counter(person["status"] for person in gone)
    said = [v for v in outcome.facts.verdicts if v.model == "left-out"]
    assert [(v.holds, v.basis, v.records) for v in said] == ([(True, "the original", len(gone))] if gone else [])
    published = [v for v in outcome.release.verdicts if v.model == "left-out"]
    assert [(v.holds, v.achieved) for v in published] == ([(True, None)] if gone else []), "it publishes no figure"


def test_people_are_still_left_out_where_that_pays():
    """So the test above is not empty."""
    assert run(table(EVEN), policy("incognito", 2, 0.1)).facts.suppressed > 0


@pytest.mark.parametrize("method", [name for name in GENERAL if name not in (*KEEP_ALL, "auto")])
def test_a_method_that_would_leave_out_somebody_alone_does_not(method, monkeypatch):
    """Whatever the method decides: one person who is dropped brings others, or stays."""
    original, rules = table(EVEN), policy(method, 2, 0.1)
    honest = METHODS[method].recode

    def harsh(self, records, requirements, order, meter=None):
        found = honest(self, records, requirements, order)
        if not self.suppression:
            return found
        keep = np.ones(records.n, bool) if found.keep is None else found.keep.copy()
        common = records.codes["status"] == np.bincount(records.codes["status"]).argmax()
        keep[np.flatnonzero(keep & common)[:1]] = False
        return replace(found, keep=keep)

    monkeypatch.setattr(METHODS[method], "recode", harsh)
    try:
        release = nr.anonymize(original, rules)
    except nr.errors.RequirementNotMet:
        return  # the class that lost somebody does not hold any more, and nothing is published
    assert safe(missing(release, original), rules)


def test_people_with_several_rows_are_counted_as_people():
    """Two visits of one person are one person in the class of those who are missing, and their secrets the person's."""
    rng = np.random.default_rng(4)
    first = table(EVEN, 3)
    whose = np.sort(np.concatenate([np.arange(N), rng.choice(N, N // 4, replace=False)]))
    visits = first.take(pa.array(whose)).set_column(0, "row", pa.array(np.arange(len(whose))))
    visits = visits.append_column("person", pa.array(whose))
    once = policy("incognito", 2, 0.1)
    rules = nr.Policy(
        mechanism="ignored",
        attributes=dict(once.attributes) | {"person": "identifier"},
        require=once.require,
        method=once.methods[0],
        people={"key": "person"},
        dependence={"most": 1.0},
    )
    gone = missing(nr.anonymize(visits, rules), visits)
    assert gone, "somebody is left out, or this says nothing"
    people = {visit["person"] for visit in gone}
    holders = Counter(status for _, status in {(visit["person"], visit["status"]) for visit in gone})
    assert len(people) >= 4
    assert max(holders.values()) * 2 <= len(people)


def test_with_drawn_secrets_those_who_are_missing_are_as_diverse_as_the_sets():
    """The method that leaves people out does not see a secret that another draws; it must answer for it."""
    original = table((0.9, 0.025, 0.025, 0.025, 0.025), 1)
    attributes = {"row": "plain", "age": "quasi-identifier", "sex": "quasi-identifier", "status": "sensitive"}
    rules = nr.Policy(
        mechanism="ignored",
        attributes=attributes | {"town": "plain", "signs": "plain"},
        require=[{"model": "k-anonymity", "k": 4}, {"model": "frequency-l-diversity", "on": "status", "l": 2}],
        method=[{"name": "incognito", "suppression": 0.1}, {"name": "decoys", "on": "status"}],
        dependence={"most": 1.0},
    )
    release = nr.anonymize(original, rules)
    assert safe(missing(release, original), rules)


def test_a_random_sample_is_exempt():
    """Chance alone says who is missing, by a share that the policy names: it is judged by nobody and tells nothing."""
    original = table(SKEWED, n=4000)
    rules = policy("mondrian", 2, 0.0, sample={"share": 0.5})
    outcome = run(original, rules)
    assert outcome.facts.suppressed == 0
    assert not any(v.model == "left-out" for v in outcome.facts.verdicts)
    gone = Counter(person["status"] for person in missing(outcome.release, original))
    everybody = Counter(original["status"].to_pylist())
    for status, count in everybody.items():  # eight standard deviations of a binomial
        assert abs(gone[status] - count / 2) < 8 * np.sqrt(count / 4)


@pytest.mark.parametrize(("extra", "holds"), [(["Married"] * 20, False), (list(STATUS) * 4, True)])
@pytest.mark.parametrize("method", ["mondrian", "anatomy"])
def test_the_auditor_sees_whether_those_who_are_missing_hold(method, extra, holds):
    """With the original, what a release lacks of each secret is known, where secrets are exact or in groups."""
    there, rules = table(EVEN), policy(method, 2, suppression=0.0)  # whom ties leave out would be missing as well
    release = nr.anonymize(there, rules)
    assert release.suppressed == 0
    shorter = release.manifest.model_copy(update={"suppressed": len(extra)})
    more = table(EVEN, 9, len(extra))
    more = more.set_column(more.column_names.index("status"), "status", pa.array(extra))
    found = nr.verify(nr.Release(shorter, release.store), rules, original=pa.concat_tables([there, more]))
    assert [v.holds for v in found if v.model == "left-out"] == [holds]


def test_secrets_that_only_the_missing_have_are_judged_too():
    """Four strangers go, each with a secret of their own that no cell shows: the original settles it."""
    people = pa.table(
        {
            "age": [30 + i % 2 for i in range(60)] + [90, 91, 92, 93],
            "ill": ["abc"[i % 3] for i in range(60)] + ["w", "x", "y", "z"],
        }
    )
    rules = nr.Policy(
        mechanism="ignored",
        attributes={"age": {"role": "quasi-identifier", "hierarchy": {"widths": [2]}}, "ill": "sensitive"},
        require=[{"model": "frequency-l-diversity", "on": "ill", "l": 3}, {"model": "k-anonymity", "k": 4}],
        method={"name": "incognito", "suppression": 0.1},
        dependence={"most": 1},
    )
    outcome = run(people, rules)
    assert outcome.facts.suppressed == 4
    assert outcome.release.column("ill").domain.values == ("a", "b", "c")
    found = nr.verify(outcome.release, rules, original=people)
    assert [v.holds for v in found if v.model == "left-out"] == [True]
    strict = rules.model_copy(update={"require": (rules.require[0].model_copy(update={"l": 5}),)})
    found = nr.verify(outcome.release, strict, original=people)
    assert [v.holds for v in found if v.model == "left-out"] == [False]
