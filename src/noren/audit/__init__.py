"""Attacks: what an adversary gains from a release. The registry is explicit: one line per attack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from noren.audit.absence import Absence
from noren.audit.attacks import Attacks
from noren.audit.base import Attack, AttackResult, Case, Scenario
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
from noren.errors import QueryError
from noren.pipeline.prepare import read_policy
from noren.policy.policy import Policy
from noren.progress import Stage, quiet
from noren.release.release import Release, open_release

ATTACKS: dict[str, type[Attack]] = {
    "linking": Linking,
    "reidentification": Reidentification,
    "homogeneity": Homogeneity,
    "similarity": Similarity,
    "disclosure": Disclosure,
    "known-records": KnownRecords,
    "bayes": Bayes,
    "intersection": Intersection,
    "predictable": Predictable,
    "minimality": Minimality,
    "absence": Absence,
}


def attack(
    release: Release | str | Path,
    name: str = "linking",
    *,
    original: Any = None,
    policy: Policy | str | Path | None = None,
    stage: Stage | None = None,
    sample: int = MOST,
    **options: Any,
) -> Attacks:
    """Attack a release, and with the original also what might have been published instead.

    Release, original and policy are objects or paths. `options` are the fields of the attack, for linking k, l, truth
    and so on. One result for every target. Of more than `sample` people so many are measured, drawn at random, and the
    result says how far shares may be off; 0 measures everybody.

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
    """
    opened = open_release(release) if isinstance(release, str | Path) else release
    rules = None if policy is None else read_policy(policy)
    return Attacks(made(name, options).run(Case(opened, rules, original, stage or quiet, sample)))


def made(name: str, options: Mapping[str, Any]) -> Attack:
    """An attack with its options."""
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
    """For every attack why it does not apply to a release, or None."""
    out: dict[str, str | None] = {}
    for name, kind in ATTACKS.items():
        needed = [option for option, field in kind.model_fields.items() if field.is_required()]
        out[name] = f"it needs {', '.join(needed)}" if needed else kind.applies(release)
    return out


def applicable(release: Release) -> list[str]:
    """The attacks that have something to attack in a release, in the order of the registry."""
    return [name for name, reason in reasons(release).items() if reason is None]


__all__ = [
    "ATTACKS",
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
    "made",
    "reasons",
]
