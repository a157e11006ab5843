"""Anatomy (Xiao, Tao 2006): exact quasi-identifiers, and a separate table of each group's secrets.

Also the grouping of one column that Rating does for every protected column.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from noren.engines import Group, Plan, RandomOrder, Records
from noren.errors import PolicyError, Problem, RequirementNotMet
from noren.methods.anatomy_kernels import anatomy_groups
from noren.methods.base import ClassMethod, Method
from noren.methods.requirements import USE_FOR_TERMS
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.statements import GroupTable

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule

RULES = ("frequency", "distinct", "subtrees")
"""What groups of l different values can meet; the rule's first number is l, of subtrees the second is their depth."""


class Anatomy(ClassMethod):
    """Publish the sensitive column as groups of records, each with at least l different secrets.

    All other columns are published exactly, so somebody who finds a person's row learns the group, and its secrets with
    their counts. The release does not hide that a person is in the table. Records of a secret that is too common are
    dropped up to the suppression limit, chosen by chance.
    """

    name: Literal["anatomy"] = "anatomy"
    sentence: ClassVar[str] = "Secrets are published in a second table, as groups of records with several secrets each."
    hides_quasi: ClassVar[bool] = False
    whole_people: ClassVar[bool] = False

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.rule import Silent

        return Silent(
            "groups are drawn at random from the records of each secret; which record has which secret is not published"
        )

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        found = served_problems(self.name, requirements)
        names = {name for model in requirements if served(model) for name in model.on}
        if len(names) != 1:
            message = f"the method 'anatomy' protects one sensitive column, but {len(names)} have requirements."
            found.append(Problem("require", message, 'Use [method] name = "rating" for several columns.'))
        for column, role in roles.items():
            if role in (Role.SENSITIVE_QUASI_IDENTIFIER, Role.QUASI_SENSITIVE):
                message = f"the method 'anatomy' cannot protect a column of role {role.value!r}."
                hint = 'Use [method] name = "rating" or "decoys", or make it sensitive.'
                hint = USE_FOR_TERMS if role is Role.QUASI_SENSITIVE else hint
                found.append(Problem(f"attributes.{column}.role", message, hint))
        return found

    @classmethod
    def candidates(cls, suppression: float) -> Sequence[Method]:
        return [cls(suppression=suppression)]

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        return taken_apart(table, requirements, self.suppression, order)


def served(model: Model) -> bool:
    """Return whether groups of different values can meet the requirement."""
    return model.search_rule is not None and model.search_rule.rule in RULES


def served_problems(method: str, requirements: Sequence[Model]) -> list[Problem]:
    """Return the requirements that groups of different values cannot meet."""
    found = []
    for number, model in enumerate(requirements, 1):
        if not served(model):
            message = f"the method {method!r} forms groups of different values and cannot meet {model.model}."
            hint = (
                "It meets frequency-l-diversity, distinct-l-diversity, le-diversity; "
                'for others use "mondrian", "hilbert" or "sweep".'
            )
            found.append(Problem(f"require[{number}].model", message, hint))
    return found


@dataclass(frozen=True)
class BucketRule:
    """The rule by which one column is grouped: l records of different buckets in each group."""

    column: str
    l: int
    buckets: NDArray[np.int64]
    """The bucket of every value: itself, or its subtree."""
    strict: bool
    """Whether a group may hold a bucket only once. Otherwise it is enough that it holds l of them."""

    @property
    def m(self) -> int:
        return int(self.buckets.max()) + 1


def rule_of(facts: Column, models: Sequence[Model]) -> BucketRule:
    """Return the rule that meets all requirements on a column: the largest l, the coarsest buckets."""
    rules = [model.search_rule for model in models if model.search_rule is not None]
    depths = [int(rule.second) for rule in rules if rule.rule == "subtrees"]
    buckets = np.arange(len(facts.domain))
    if depths:
        height = 0 if facts.tree is None else facts.tree.height
        if facts.tree is None or max(depths) > height:
            message = (
                f"le-diversity with e = {max(depths)} needs {max(depths)} levels below the root; the hierarchy has "
                f"{height}."
            )
            hint = "Give the column a deeper hierarchy, or choose a smaller e."
            raise PolicyError([Problem(f"require on {facts.name!r}", message, hint)])
        buckets = facts.tree.groups(height - min(depths))[1]
    size = max(ceil(rule.first) for rule in rules)
    return BucketRule(facts.name, size, buckets, any(rule.rule != "distinct" for rule in rules))


def taken_apart(table: Records, requirements: Sequence[Model], suppression: float, order: RandomOrder) -> Plan:
    """Group every column with a requirement separately, independently of all other columns."""
    named = dict.fromkeys(name for model in requirements for name in model.on)
    rules = [rule_of(table.columns[n], [model for model in requirements if n in model.on]) for n in named]
    if table.people is not None:
        from noren.methods.people_apart import people_apart

        return people_apart(table, rules, suppression, order)
    keep = _eligible(table, rules, int(suppression * table.n + 1e-9), order)
    columns = {rule.column: _grouped(table, rule, keep, order) for rule in rules}
    notes = [f"{name}: {column.table.groups} groups" for name, column in columns.items()]
    return Plan(columns, None if keep.all() else keep, tuple(notes))


def _eligible(table: Records, rules: Sequence[BucketRule], limit: int, order: RandomOrder) -> NDArray[np.bool_]:
    """Return the records that are published: all, or without those of buckets too frequent for their column's l."""
    from noren.methods.hilbert import eligible_cap, first_of_value

    keep = np.ones(table.n, bool)
    waiting = [rule for rule in rules if rule.strict]
    settled = False
    while not settled:
        settled = True
        for rule in waiting:
            buckets = rule.buckets[table.codes[rule.column]]
            counts = np.bincount(buckets[keep], minlength=rule.m)
            cap = eligible_cap(counts, rule.l)
            if counts.max(initial=0) > cap:
                rows = order(table.n)
                rows = rows[keep[rows]]
                keep[rows] = first_of_value(buckets[rows], rule.m, cap)
                settled = False
            dropped = table.n - int(keep.sum())
            if dropped > limit or dropped == table.n:
                refuse(table, rule, limit)
    return keep


def refuse(table: Records, rule: BucketRule, limit: int) -> None:
    counts = np.bincount(rule.buckets[table.codes[rule.column]])
    reachable = table.n // max(1, int(counts.max(initial=0))) if rule.strict else int((counts > 0).sum())
    dropped = f" with at most {limit} records dropped" if limit else ""
    message = (
        f"l = {rule.l} cannot be reached for {rule.column!r}{dropped}: it has too few different values, or one "
        "value is "
        "too common."
    )
    without = " without dropping records" if rule.strict else ""
    most = f"The largest l{without} is {reachable}." if reachable > 1 else f"No l of 2 or more can be reached{without}."
    raise RequirementNotMet(message, hint=most)


def _grouped(table: Records, rule: BucketRule, keep: NDArray[np.bool_], order: RandomOrder) -> Group:
    """Return the groups of one column, numbered at random."""
    rows = order(table.n)
    rows = rows[keep[rows]]
    codes = table.codes[rule.column]
    groups, count = anatomy_groups(rule.buckets[codes[rows]], rule.m, rule.l, order(len(rows) // rule.l))
    if not count:
        refuse(table, rule, 0)
    alone = np.flatnonzero(groups < 0)
    groups[alone] = order(count)[np.arange(len(alone)) % count]  # only if a group may hold a value twice
    data = np.zeros(table.n, np.int64)
    data[rows] = order(count)[groups]
    d = len(table.columns[rule.column].domain)
    return Group(GroupTable.from_codes(count, d, data[keep], codes[keep]), data)
