"""Attacks: what an adversary gains from a release. The registry is explicit: one line per attack."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.linking import Linking
from noren.errors import QueryError
from noren.pipeline.anonymize import Stage, quiet
from noren.policy.policy import Policy
from noren.release.release import Release

ATTACKS: dict[str, type[Attack]] = {
    "linking": Linking,
}


def attack(
    release: Release,
    name: str = "linking",
    *,
    original: Any = None,
    policy: Policy | None = None,
    stage: Stage | None = None,
    **options: Any,
) -> list[AttackResult]:
    """Attack a release, and with the original also what might have been published instead.

    `options` are the fields of the attack, for linking k, l, truth and so on. One result for every target.
    """
    if name not in ATTACKS:
        raise QueryError(f"no attack {name!r}.", hint=f"Known: {', '.join(ATTACKS)}.")
    kind = ATTACKS[name]
    try:
        made = kind.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        option = ".".join(map(str, first["loc"]))
        known = ", ".join(field for field in kind.model_fields if field != "name")
        raise QueryError(f"{name}: {option}: {first['msg']}.", hint=f"Options: {known}.") from None
    return made.run(Case(release, policy, original, stage or quiet))


__all__ = ["ATTACKS", "Attack", "AttackResult", "Case", "Linking", "Scenario", "attack"]
