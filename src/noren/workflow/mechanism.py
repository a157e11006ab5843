"""The requirement `mechanism`, judged with the original: what whoever knows the method believes about everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noren.engines import Records
from noren.errors import RequirementNotMet
from noren.methods.mechanism.judge import Replay, rule_of
from noren.methods.mechanism.rule import Rule
from noren.models.base import Model
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.release.published import Published
from noren.release.store import names_people

INSTEAD = 'Use blind = true of "mondrian" or "hilbert", or [method] name = "auto", which keeps to methods that meet it.'


def used_methods(policy: Policy, facts: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The methods of a policy that form classes, with their settings and what they came to."""
    return [
        (part.method.name, part.method.settings | (dict(facts) if part.method.forms_classes else {}))
        for part in policy.parts
        if part.method.forms_classes
    ]


def settings_of(policy: Policy | None, name: str) -> dict[str, Any]:
    """How the policy sets a method that a release names."""
    methods = () if policy is None else policy.methods
    return next((dict(method.settings) for method in methods if method.name == name and not method.chooses), {})


def with_mechanism(
    verdicts: Sequence[Verdict],
    published: Published,
    table: Records,
    requirements: Sequence[Model],
    methods: Sequence[tuple[str, Mapping[str, Any]]],
) -> list[Verdict]:
    """The verdicts, with those on the mechanism settled by the original."""
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
        "the method does not say how it is replayed, so nobody can say what it reveals.",
        hint="Leave the requirement mechanism out, or use another method.",
    )
