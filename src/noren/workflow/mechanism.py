"""The requirement on the mechanism, checked with the original.

The requirement `mechanism` limits the belief. Without it too nobody's secret that classes protect may be certain by
replaying the method, unless the policy says `mechanism = "ignored"`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from noren.engines import Records
from noren.errors import RequirementNotMet
from noren.methods.blind import CLASS_SIZE
from noren.methods.mechanism.judge import CHOSEN, Replay, guarding, rule_of
from noren.methods.mechanism.rule import Rule
from noren.methods.mechanism.sight import largest_share
from noren.models.base import Model
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.release.published import Published
from noren.release.store import names_people

INSTEAD = (
    'Use "mondrian" or "hilbert" with blind = true, or [method] name = "auto", which tries only methods that meet it.'
)
BLIND = (
    'Use [method] name = "hilbert", or "mondrian" with blind = true; mechanism = "ignored" publishes it without '
    "this check."
)


def used_methods(policy: Policy, facts: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the methods of a policy that form classes, with their settings and published facts."""
    return [
        (part.method.name, part.method.settings | (dict(facts) if part.method.forms_classes else {}))
        for part in policy.parts
        if part.method.forms_classes
    ]


def settings_of(policy: Policy | None, name: str) -> dict[str, Any]:
    """Return the policy's settings of a method that a release names."""
    methods = () if policy is None else policy.methods
    return next((dict(method.settings) for method in methods if method.name == name and not method.chooses), {})


def with_mechanism(
    verdicts: Sequence[Verdict],
    published: Published,
    table: Records,
    requirements: Sequence[Model],
    methods: Sequence[tuple[str, Mapping[str, Any]]],
) -> list[Verdict]:
    """Return the verdicts, with those on the mechanism decided by the original."""
    asked = {(model.model, name): model for model in requirements if model.of_mechanism for name in model.on}
    if not asked:
        return list(verdicts)
    rule = _rule(methods)
    if table.people is not None and not names_people(published.store) and not rule.silent:
        return list(verdicts)  # a release does not say which class holds whom, and classes are made of people
    replay = Replay(published, table, requirements, rule)
    keys = [(one.model, one.column) for one in verdicts]
    return [
        replay.verdict(asked[key], key[1]) if key in asked else one for key, one in zip(keys, verdicts, strict=True)
    ]


def _rule(methods: Sequence[tuple[str, Mapping[str, Any]]]) -> Rule:
    for name, settings in methods:
        if (rule := rule_of(name, settings)) is not None:
            return rule
    raise RequirementNotMet(
        "the method cannot be replayed, so it is not known what it discloses.",
        hint="Remove the requirement mechanism, or use another method.",
    )


# ---------------------------------------------------------------- without being asked


@dataclass(frozen=True)
class Replayed:
    """What replaying the method discloses about one secret. For the holder only, because it is computed from the
    original."""

    column: str
    method: str
    says: str
    """How the method is replayed."""
    belief: float | None
    """The largest belief in anybody's true secret; None where nobody has computed it."""
    bounded: bool
    """Whether nobody can learn more than that."""
    certain: int
    """People whose secret is certain by the rule, though not by the classes alone."""

    @property
    def sentence(self) -> str:
        """Return the result in plain words."""
        who = f"{self.column!r} with more than {_up(self.belief or 0.0):g}"
        if self.bounded and self.belief is None:
            return f"Replaying the method discloses nothing more about {self.column!r}: {self.says}."
        if self.bounded:
            return f"Somebody who replays the method believes no person's {who}."
        known = "" if self.belief is None else f"; the largest computed belief is {_up(self.belief):g}"
        return (
            f'mechanism = "ignored": somebody who replays the method may know {self.column!r} of some people for '
            f"certain{known}."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.column, "method": self.method, "rule": self.says, "belief": self.belief,
            "bounded": self.bounded, "certain": self.certain, "sentence": self.sentence,
        }  # fmt: skip


def _up(belief: float) -> float:
    return ceil(belief * 100 - 1e-6) / 100


def guarded_rules(policy: Policy, facts: Mapping[str, Any]) -> list[tuple[str, Rule | None, str, Sequence[Model]]]:
    """Return every secret that classes protect: method, rule, column and requirements."""
    out: list[tuple[str, Rule | None, str, Sequence[Model]]] = []
    for part in policy.parts:
        if not part.method.forms_classes:
            continue
        chosen = facts.get(CHOSEN) if part.method.chooses else None
        known = chosen is None and CLASS_SIZE not in facts
        rule = part.method.mechanism() if known else rule_of(part.method.name, {**part.method.settings, **facts})
        asked = [model for model in part.requirements if not model.of_mechanism]
        for name in part.columns:
            if policy.attributes[name].role.needs_requirement and guarding(asked, name):
                out.append((str(chosen or part.method.name), rule, name, asked))
    return out


def demand_bounded(policy: Policy) -> None:
    """Refuse a method for which no bound is known, before any data is read."""
    for method, rule, name, _ in guarded_rules(policy, {}) if policy.mechanism == "judged" else []:
        if rule is None or not rule.bounded:
            raise RequirementNotMet(
                f"somebody who replays {method!r} may know secrets in {name!r} for certain, so nothing is published"
                f"{'' if rule is None else f': {rule.says}'}.",
                hint=BLIND,
            )


def demand_uncertain(found: Sequence[Replayed], policy: Policy) -> None:
    """Refuse a release if somebody who replays the method knows a secret for certain."""
    for one in found if policy.mechanism == "judged" else []:
        if one.certain:
            raise RequirementNotMet(
                f"somebody who replays {one.method!r} may know {one.column!r} of {one.certain:,} people for "
                f"certain, so nothing is published: {one.says}.",
                hint=BLIND,
            )


def replay_methods(published: Published, table: Records, policy: Policy, facts: Mapping[str, Any]) -> list[Replayed]:
    """Return what replaying the methods discloses about every secret that classes protect."""
    out = []
    unnamed = table.people is not None and not names_people(published.store)
    for method, rule, name, asked in guarded_rules(policy, facts):
        statement = published.column(name)
        if unnamed and rule is not None and not rule.silent:
            continue  # a release does not say which class holds whom, and classes are made of people
        if rule is None:
            out.append(Replayed(name, method, "the method cannot be replayed", None, False, 0))
        elif (statement.is_exact or statement.nodes is not None) and not statement.column.is_open:
            out.append(_replayed(Replay(published, table, asked, rule), method, name))
        else:
            out.append(Replayed(name, method, rule.says, None, rule.bounded, 0))
    return out


def _replayed(replay: Replay, method: str, name: str) -> Replayed:
    rule = replay.rule
    belief: float | None = None
    if not rule.silent:
        belief = replay.believed(name)
    elif rule.bounded:
        belief = largest_share(replay.published, name)
    return Replayed(name, method, rule.says, belief, rule.bounded, replay.certain(name) if rule.bounded else 0)
