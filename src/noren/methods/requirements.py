"""Requirements in the form of the kernels: a kind and two numbers per sensitive column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, floor, isfinite

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from noren.engines import Records
from noren.engines.left_out import Members
from noren.errors import PolicyError, Problem, RequirementNotMet
from noren.methods import kernels as kinds
from noren.models.base import Model
from noren.models.verdict import Verdict
from noren.ragged import distinct_of, offsets_of, owners
from noren.schema.roles import Role


@dataclass(frozen=True)
class Compiled:
    """All requirements of a policy on the sensitive columns of a table."""

    sensitive: tuple[str, ...]
    rules: kinds.Rules

    def holds(self, hists: NDArray[np.float64], n: int) -> bool:
        """Return whether one class, given by its (columns, values) histograms, meets all requirements."""
        return bool(kinds.class_holds(self.rules, hists, n))

    def failing(self, codes: Mapping[str, NDArray], classes: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
        """Return which classes of records fail, given the codes of the sensitive columns and the class of every record
        (0 to count - 1; below 0: none)."""
        kept = np.flatnonzero(classes >= 0)
        first = offsets_of(self.rules.values)
        used = [j for j, _ in enumerate(self.sensitive) if j in self.rules.columns]
        keys = [classes[kept] * first[-1] + first[j] + codes[self.sensitive[j]][kept] for j in used]
        key, _, number = distinct_of(np.concatenate([kept[:0], *keys]))
        column = owners(first)[key % first[-1]]
        sizes = np.bincount(classes[kept], minlength=count)
        bounds = np.searchsorted(key, np.arange(count + 1) * first[-1])
        value = key % first[-1] - first[column]
        failing = kinds.failing_classes(bounds, column, value, np.bincount(number), sizes, len(kept), self.rules)
        return np.asarray(failing)

    def __iter__(self) -> Iterator[tuple[int, int, float, float]]:
        """Yield kind, sensitive column (-1: none), and the two numbers of each."""
        rules = self.rules
        return zip(*(part.tolist() for part in (rules.kinds, rules.columns, rules.first, rules.second)), strict=True)


def compiled(table: Records, requirements: Sequence[Model]) -> Compiled:
    """Compile the requirements into numbers and tables."""
    sensitive = table.sensitive
    place = {name: i for i, name in enumerate(sensitive)}
    rows: list[tuple[int, int, float, float]] = []
    shallow = [problem for model in requirements for problem in _too_deep(table, model)]
    if shallow:
        raise PolicyError(shallow)
    for model in requirements:
        kind, first, second = numbers_of(model)
        if kind == kinds.K_ANONYMITY:
            rows.append((kind, -1, first, second))
            continue
        rows += [(kind, place[name], first, second) for name in model.on]
    count = max(1, len(sensitive))
    width = max([1, *(len(table.columns[name].domain) for name in sensitive)])
    trees = [table.columns[name].tree for name in sensitive]
    deepest = max([1, *(tree.height for tree in trees if tree is not None)])
    reference = np.zeros((count, width))
    levels = np.zeros((count, deepest, width), np.int64)
    heights = np.ones(count, np.int64)
    values = np.ones(count, np.int64)
    for name, j in place.items():
        facts = table.columns[name]
        d = values[j] = len(facts.domain)
        reference[j, :d] = table.counts(name) / max(1, table.n)
        levels[j, 0, :d] = np.arange(d)
        if facts.tree is not None:
            heights[j] = facts.tree.height
            for h in range(facts.tree.height):
                levels[j, h, :d] = facts.tree.groups(h)[1]
    listed = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    rules = kinds.Rules(
        kinds=np.array(listed[0], np.int64),
        columns=np.array(listed[1], np.int64),
        first=np.array(listed[2], np.float64),
        second=np.array(listed[3], np.float64),
        values=values,
        reference=reference,
        levels=levels,
        heights=heights,
        rare=True if any(kind >= kinds.RARE for kind in listed[0]) else None,
    )
    return Compiled(sensitive, rules)


def _too_deep(table: Records, model: Model) -> list[Problem]:
    """Return the requirements that need a deeper hierarchy; without one the values are directly under a root."""
    rule = model.search_rule
    if rule is None or rule.rule != "subtrees":
        return []
    depth = int(rule.second)
    heights = {name: 1 if (tree := table.columns[name].tree) is None else tree.height for name in model.on}
    return [
        Problem(
            f"require on {name!r}",
            f"{model.model} needs a hierarchy with {depth} levels below its root; this one has {height}.",
            "Give the column a deeper hierarchy, or lower the requirement.",
        )
        for name, height in heights.items()
        if height < depth
    ]


LESS = 'Ask for less, drop the column, or use [method] name = "decoys" ("suppress" for terms).'


def demand_reachable(table: Records, requirements: Sequence[Model]) -> None:
    """Refuse what not even one class of all records meets, with what it reaches."""
    for model in requirements:
        if (found := _shortfall(table, model)) is None:
            continue
        about = f" on {found.column!r}" if model.on else ""
        reason = found.statement
        if model.least_class_size > table.n:
            reason = f"k = {model.least_class_size} is more than the {table.n} records"
        elif isfinite(found.achieved):
            reason = f"{model.parameter} = {found.achieved:.4g} is reached, and {model.required:g} is asked"
        message = f"{model.model}{about} does not hold even if all {table.n} records form one class: {reason}."
        raise RequirementNotMet(message, hint=_within_reach(table, model, found.achieved))


def _shortfall(table: Records, model: Model) -> Verdict | None:
    """The verdict on all records as one class, where they fail."""
    verdicts = Members(table, [model]).judged(np.ones(table.n, bool))
    return next((one for one in verdicts if one.holds is not True), None)


def _within_reach(table: Records, model: Model, achieved: float) -> str:
    """The parameter that one class of all records would meet, where the model takes it."""
    if model.least_class_size > table.n:
        return f"Set k to at most {table.n}."
    if not isfinite(achieved):
        return LESS
    name, safer = model.parameter, model.higher_is_safer
    scale = 1 if isinstance(getattr(model, name), int) else 10_000
    near = achieved * scale
    values = (floor(near + 1e-6), floor(near) - 1) if safer else (ceil(near - 1e-6), ceil(near) + 1)
    for value in values:
        with suppress(ValidationError):
            looser = model.model_validate(model.model_dump(warnings=False) | {name: value / scale})
            if _shortfall(table, looser) is None:
                return f"Set {name} to at {'most' if safer else 'least'} {value / scale:g}."
    return LESS


def numbers_of(model: Model) -> tuple[int, float, float]:
    """Return the kernel's number for the rule of one requirement, and its parameters."""
    rule = model.search_rule
    if rule is None:
        raise LookupError(model.model)
    return getattr(kinds, rule.rule.upper()), rule.first, rule.second


USE_FOR_TERMS = 'Use [method] name = "suppress" or "mondrian".'


def understood(model: Model) -> bool:
    """Return whether methods that form classes can meet the model."""
    return model.search_rule is not None


def about_values(requirements: Sequence[Model]) -> list[Model]:
    """Return the requirements that `compiled` takes: all except those about terms."""
    return [model for model in requirements if model.about != "terms"]


def class_problems(
    name: str, roles: Mapping[str, Role], requirements: Sequence[Model], suppression: float, *, terms: bool = False
) -> list[Problem]:
    """Return why a method that forms classes cannot meet a policy, before any data is read.

    terms: whether the method meets requirements about quasi-sensitive terms.
    """
    found = []
    for number, model in enumerate(requirements, 1):
        if model.about == "terms":
            if not terms:
                message = f"the method {name!r} ignores terms and cannot meet {model.model}."
                found.append(Problem(f"require[{number}].model", message, USE_FOR_TERMS))
        elif not understood(model):
            message = f"the method {name!r} forms classes of records and cannot meet {model.model}."
            found.append(Problem(f"require[{number}].model", message, model.method_hint))
        elif suppression and model.relative:
            message = f"{model.model} compares classes with the whole table, which changes if records are suppressed."
            found.append(Problem("method.suppression", message, "Set suppression = 0."))
    for column, role in roles.items():
        if role is Role.QUASI_SENSITIVE and not terms:
            message = f"the method {name!r} cannot protect a column of role {role.value!r}."
            found.append(Problem(f"attributes.{column}.role", message, USE_FOR_TERMS))
        if role is Role.SENSITIVE_QUASI_IDENTIFIER:
            message = f"the method {name!r} cannot protect a column of role {role.value!r}."
            hint = 'Use [method] name = "decoys" or "rating", or make it a quasi-identifier or sensitive.'
            found.append(Problem(f"attributes.{column}.role", message, hint))
    if not any(role is Role.QUASI_IDENTIFIER for role in roles.values()):
        message = f"the method {name!r} generalises quasi-identifiers, but the policy has none."
        found.append(Problem("attributes", message, "Give a column the role 'quasi-identifier'."))
    return found
