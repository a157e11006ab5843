"""Requirements as the kernels of methods understand them: a kind and two numbers per sensitive column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.errors import PolicyError, Problem
from noren.models.base import Model
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.kernels import Rules


@dataclass(frozen=True)
class Compiled:
    """All requirements of a policy on the sensitive columns of a table."""

    sensitive: tuple[str, ...]
    rules: Rules

    def holds(self, hists: NDArray[np.float64], n: int) -> bool:
        """Whether one class, given by its (columns, values) histograms, meets everything."""
        from noren.methods import kernels as kinds

        return bool(kinds.class_holds(self.rules, hists, n))

    def __iter__(self) -> Iterator[tuple[int, int, float, float]]:
        """One after the other: kind, sensitive column (-1: none), and the two numbers."""
        rules = self.rules
        return zip(*(part.tolist() for part in (rules.kinds, rules.columns, rules.first, rules.second)), strict=True)


def compiled(table: Records, requirements: Sequence[Model]) -> Compiled:
    """The requirements in numbers, with the tables they refer to."""
    from noren.methods import kernels as kinds

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
        reference[j, :d] = table.counts(name) / max(1, table.records)
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
    """Requirements that look deeper into a hierarchy than it goes; without one the values hang under a root."""
    rule = model.search_rule
    if rule is None or rule.rule != "subtrees":
        return []
    depth = int(rule.second)
    heights = {name: 1 if (tree := table.columns[name].tree) is None else tree.height for name in model.on}
    return [
        Problem(
            f"require on {name!r}",
            f"{model.model} needs a hierarchy of {depth} levels below its root; there are {height}.",
            "Give the column a deeper hierarchy, or ask for less.",
        )
        for name, height in heights.items()
        if height < depth
    ]


def numbers_of(model: Model) -> tuple[int, float, float]:
    """The kernel's number for the rule of one requirement, and its parameters."""
    from noren.methods import kernels as kinds

    rule = model.search_rule
    if rule is None:
        raise LookupError(model.model)
    return getattr(kinds, rule.rule.upper()), rule.first, rule.second


USE_FOR_TERMS = 'Use [method] name = "suppress" or "mondrian".'


def understood(model: Model) -> bool:
    """Whether methods that form classes can meet the model."""
    return model.search_rule is not None


def about_values(requirements: Sequence[Model]) -> list[Model]:
    """The requirements that `compiled` takes: all but those about terms."""
    return [model for model in requirements if model.about != "terms"]


def class_problems(
    name: str, roles: Mapping[str, Role], requirements: Sequence[Model], suppression: float, *, terms: bool = False
) -> list[Problem]:
    """What keeps a method that forms classes from serving a policy, before any data is seen.

    terms: whether the method meets requirements about quasi-sensitive terms.
    """
    found = []
    for number, model in enumerate(requirements, 1):
        if model.about == "terms":
            if not terms:
                message = f"the method {name!r} does not look at terms and cannot meet {model.model}."
                found.append(Problem(f"require[{number}].model", message, USE_FOR_TERMS))
        elif not understood(model):
            message = f"the method {name!r} forms classes of records and cannot meet {model.model}."
            found.append(Problem(f"require[{number}].model", message, model.method_hint))
        elif suppression and model.relative:
            message = f"{model.model} compares classes with the whole table, which dropping records changes."
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
        message = f"the method {name!r} generalises quasi-identifiers, and there is none."
        found.append(Problem("attributes", message, "Give a column the role 'quasi-identifier'."))
    return found
