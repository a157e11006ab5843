"""Attacks: what an adversary gains from a release. The registry is explicit: one line per attack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from noren.audit.absence import Absence
from noren.audit.base import KNOWLEDGE, Attack, AttackResult, Attacks, Case, Scenario, order_attacks
from noren.audit.bayes import Bayes
from noren.audit.disclosure import Disclosure
from noren.audit.homogeneity import Homogeneity
from noren.audit.intersection import Intersection
from noren.audit.known_records import KnownRecords
from noren.audit.linking import Linking
from noren.audit.minimality import Minimality
from noren.audit.predictable import Predictable
from noren.audit.reidentification import Reidentification
from noren.audit.sample import MOST
from noren.audit.similarity import Similarity
from noren.engines import Engine, engine_for
from noren.errors import QueryError
from noren.policy.policy import Policy
from noren.progress import Stage, quiet
from noren.release.release import Release, open_release
from noren.workflow.prepare import read_policy

ATTACKS: dict[str, type[Attack]] = {
    "reidentification": Reidentification,
    "homogeneity": Homogeneity,
    "similarity": Similarity,
    "disclosure": Disclosure,
    "linking": Linking,
    "bayes": Bayes,
    "intersection": Intersection,
    "predictable": Predictable,
    "minimality": Minimality,
    "absence": Absence,
    "known-records": KnownRecords,
}
"""In the order of what the adversary must know, the least first."""


def attack(
    release: Release | str | Path,
    name: str | None = None,
    *,
    original: Any = None,
    policy: Policy | str | Path | None = None,
    stage: Stage | None = None,
    sample: int = MOST,
    engine: str | Engine | None = None,
    **options: Any,
) -> Attacks:
    """Attack a release and return one result per target; with the original, also attack the tables that might have been
    published instead.

    Without a name every attack that applies, with its usual options; `options` are the fields of one that is named, for
    linking k, l, truth and so on. Release, original and policy are objects or paths. One result for every target. Of
    more than `sample` people so many are measured, drawn at random, and the result says how far shares may be off; 0
    measures everybody.

    With `engine="spark"` the cluster counts different rows, and the attacks that need no more run on these counts, for
    everybody and without the original; another one that is named is refused.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": ["cook", "clerk", "miner", "nurse"] * 10})
    >>> asked = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="job", l=2)]
    >>> roles = {"town": "quasi-identifier", "job": "sensitive"}
    >>> policy = nr.Policy(attributes=roles, require=asked, method="mondrian")
    >>> (found,) = nr.attack(nr.anonymize(people, policy), "homogeneity")
    >>> found
    <AttackResult: homogeneity on job, 1 scenario>
    >>> found.scenarios[0].summary["max_belief"]
    0.25
    >>> [one.attack for one in nr.attack(nr.anonymize(people, policy))]
    ['reidentification', 'homogeneity', 'disclosure', 'predictable', 'minimality', 'known-records']
    """
    given: dict[str, Any] = {"original": original, "policy": policy, "stage": stage, "sample": sample, "engine": engine}
    return Attacks(list(iterate_attacks(release, name, **given, **options)))


def iterate_attacks(
    release: Release | str | Path,
    name: str | None = None,
    *,
    original: Any = None,
    policy: Policy | str | Path | None = None,
    stage: Stage | None = None,
    sample: int = MOST,
    engine: str | Engine | None = None,
    **options: Any,
) -> Iterator[AttackResult]:
    """Yield the results of `attack` one by one, each as soon as it is known.

    The adversary who must know least comes first, so that the first results of a large release are there while the
    attacks that take long still run.
    """
    there = counting_engine(engine)
    opened = open_release(release) if there is None else there.open_release(release)
    rules = None if policy is None else read_policy(policy)
    case = Case(opened, rules, original, stage or quiet, sample, counts=there is not None)
    if name is None and options:
        raise QueryError(f"no attack has these options: {', '.join(options)}.", hint=f"Name one: {', '.join(ATTACKS)}.")
    names = applicable(opened, case.counts) if name is None else [name]
    for one in order_attacks([make_attack(one, options) for one in names]):
        yield from one.results(case)


def make_attack(name: str, options: Mapping[str, Any]) -> Attack:
    """Return an attack with its options."""
    if name not in ATTACKS:
        raise QueryError(f"no attack {name!r}.", hint=f"Known: {', '.join(ATTACKS)}.")
    kind = ATTACKS[name]
    try:
        return kind.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        option = ".".join(map(str, first["loc"]))
        known = ", ".join(field for field in kind.model_fields if field != "name")
        raise QueryError(f"{name}: {option}: {first['msg']}.", hint=f"Options: {known}.") from None


def reasons(release: Release) -> dict[str, str | None]:
    """Return, for every attack, why it does not apply to a release; None if it applies."""
    out: dict[str, str | None] = {}
    for name, kind in ATTACKS.items():
        needed = [option for option, field in kind.model_fields.items() if field.is_required()]
        out[name] = f"it needs {', '.join(needed)}" if needed else kind.applies(release)
    return out


def applicable(release: Release, counts: bool = False) -> list[str]:
    """Return the attacks that have something to attack in a release, or in the counts of its different rows."""
    able = [name for name, kind in ATTACKS.items() if not counts or kind.needs_rows is None]
    return [name for name, reason in reasons(release).items() if reason is None and name in able]


def counting_engine(engine: str | Engine | None) -> Any:
    """Return the engine that counts a release's rows elsewhere; None for this machine."""
    found = None if engine is None else engine_for(None, engine)
    return found if hasattr(found, "open_release") else None


__all__ = [
    "ATTACKS",
    "KNOWLEDGE",
    "Absence",
    "Attack",
    "AttackResult",
    "Attacks",
    "Case",
    "Disclosure",
    "Homogeneity",
    "KnownRecords",
    "Linking",
    "Reidentification",
    "Scenario",
    "Similarity",
    "applicable",
    "attack",
    "counting_engine",
    "iterate_attacks",
    "make_attack",
    "order_attacks",
    "reasons",
]
