"""Requirements as the kernels of methods understand them: a kind and two numbers per sensitive column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.errors import PolicyError, Problem
from noren.methods.base import CodedTable
from noren.models.base import Model
from noren.models.term_check import TermModel
from noren.schema.roles import Role


@dataclass(frozen=True)
class Compiled:
    """All requirements of a policy on the sensitive columns of a table."""

    sensitive: tuple[str, ...]
    kinds: NDArray[np.int64]
    columns: NDArray[np.int64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    values: NDArray[np.int64]
    reference: NDArray[np.float64]
    levels: NDArray[np.int64]
    heights: NDArray[np.int64]

    @property
    def arguments(self) -> tuple[NDArray, ...]:
        """What `class_holds` takes before the histograms."""
        parts = (self.kinds, self.columns, self.first, self.second, self.values)
        return (*parts, self.reference, self.levels, self.heights)

    def holds(self, hists: NDArray[np.float64], n: int) -> bool:
        """Whether one class, given by its (columns, values) histograms, meets everything."""
        from noren.kernels import requirements as kinds

        return bool(kinds.class_holds(*self.arguments, hists, n))  # type: ignore[call-arg]


def compiled(table: CodedTable, requirements: Sequence[Model]) -> Compiled:
    """The requirements in numbers, with the tables they refer to."""
    from noren.kernels import requirements as kinds

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
    trees = [table.columns[name].hierarchy for name in sensitive]
    deepest = max([1, *(tree.height for tree in trees if tree is not None)])
    reference = np.zeros((count, width))
    levels = np.zeros((count, deepest, width), np.int64)
    heights = np.ones(count, np.int64)
    values = np.ones(count, np.int64)
    for name, j in place.items():
        facts = table.columns[name]
        d = values[j] = len(facts.domain)
        reference[j, :d] = np.bincount(table.codes[name], minlength=d) / max(1, table.n)
        levels[j, 0, :d] = np.arange(d)
        if facts.hierarchy is not None:
            heights[j] = facts.hierarchy.height
            for h in range(facts.hierarchy.height):
                levels[j, h, :d] = facts.hierarchy.groups(h)[1]
    listed = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    return Compiled(
        sensitive,
        np.array(listed[0], np.int64),
        np.array(listed[1], np.int64),
        np.array(listed[2], np.float64),
        np.array(listed[3], np.float64),
        values,
        reference,
        levels,
        heights,
    )


def _too_deep(table: CodedTable, model: Model) -> list[Problem]:
    """Requirements that look deeper into a hierarchy than it goes; without one the values hang under a root."""
    if model.model != "le-diversity":
        return []
    depth = model.parameters()["e"]
    heights = {name: 1 if (tree := table.columns[name].hierarchy) is None else tree.height for name in model.on}
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
    """Kind and parameters of one requirement."""
    from noren.kernels import requirements as kinds

    closeness = {"equal": kinds.CLOSE_EQUAL, "ordered": kinds.CLOSE_ORDERED, "tree": kinds.CLOSE_TREE}
    likeness = {"basic": kinds.BETA_BASIC, "enhanced": kinds.BETA_ENHANCED}
    given = model.parameters()
    match model.model:
        case "k-anonymity":
            return kinds.K_ANONYMITY, given["k"], 0.0
        case "distinct-l-diversity":
            return kinds.DISTINCT, given["l"], 0.0
        case "frequency-l-diversity":
            return kinds.FREQUENCY, given["l"], 0.0
        case "entropy-l-diversity":
            return kinds.ENTROPY, given["l"], 0.0
        case "recursive-cl-diversity":
            return kinds.RECURSIVE, given["c"], given["l"]
        case "alpha-k-anonymity":
            return kinds.ALPHA_K, given["alpha"], given["k"]
        case "t-closeness":
            return closeness[given["distance"]], given["t"], 0.0
        case "tau-l-diversity":
            return kinds.TAU_L, given["tau"], given["l"]
        case "beta-likeness":
            return likeness[given["form"]], given["beta"], 0.0
        case "delta-disclosure":
            return kinds.DELTA, given["delta"], 0.0
        case "p-sensitive-k-anonymity":
            return kinds.P_SENSITIVE, given["p"], given["k"]
        case "le-diversity":
            return kinds.SUBTREES, given["l"], given["e"]
    raise LookupError(model.model)


RELATIVE = ("t-closeness", "beta-likeness", "delta-disclosure")
"""Models that compare a class with the whole table, which dropping records would change."""


SERVED = (
    "k-anonymity",
    "distinct-l-diversity",
    "frequency-l-diversity",
    "entropy-l-diversity",
    "recursive-cl-diversity",
    "alpha-k-anonymity",
    "tau-l-diversity",
    "p-sensitive-k-anonymity",
    "le-diversity",
    *RELATIVE,
)
"""Models that `numbers_of` can put into numbers; a contract test runs each of them."""


USE_FOR_TERMS = 'Use [method] name = "suppress" or "mondrian".'


def understood(model: Model) -> bool:
    """Whether methods that form classes can meet the model."""
    return model.model in SERVED


def about_values(requirements: Sequence[Model]) -> list[Model]:
    """The requirements that `compiled` takes: all but those about terms."""
    return [model for model in requirements if not isinstance(model, TermModel)]


def class_problems(
    name: str, roles: Mapping[str, Role], requirements: Sequence[Model], suppression: float, *, terms: bool = False
) -> list[Problem]:
    """What keeps a method that forms classes from serving a policy, before any data is seen.

    terms: whether the method meets requirements about quasi-sensitive terms.
    """
    found = []
    for number, model in enumerate(requirements, 1):
        if isinstance(model, TermModel):
            if not terms:
                message = f"the method {name!r} does not look at terms and cannot meet {model.model}."
                found.append(Problem(f"require[{number}].model", message, USE_FOR_TERMS))
        elif not understood(model):
            message = f"the method {name!r} forms classes of records and cannot meet {model.model}."
            found.append(Problem(f"require[{number}].model", message, 'Use [method] name = "decoys".'))
        elif suppression and model.model in RELATIVE:
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
