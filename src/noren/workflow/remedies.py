"""Simple changes of a policy that may make it acceptable, each a sentence and a policy.

No change lowers a requirement: what must hold is the holder's to say. Whether a change helps is found out by running
the checks of `anonymize` on it, so that a change may be offered that does not help.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from noren.errors import PolicyError
from noren.methods.base import ClassMethod, Method
from noren.methods.hilbert import Hilbert
from noren.methods.mondrian import Mondrian
from noren.models.base import Model
from noren.policy.policy import Policy
from noren.policy.together import Together
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.schema.tuples import MOST_MEMBERS
from noren.workflow.dependence import Told, cover, list_names

COMMON = 5
"""Records from which a value is common enough to be named."""
BINS = (20, 8, 4)
"""Numbers of bins that are tried, each of about as many people."""
SUPPRESSION = (0.01, 0.05, 0.1)
"""Shares of the records that a method may suppress."""
LARGER = (1, 2, 4, 8)
"""How many values more a set may have than the requirement asks."""


@dataclass(frozen=True)
class Remedy:
    """A change in words, and the changed policy."""

    words: str
    policy: Policy
    family: str = ""
    """Changes of one kind, each dearer than the one before: the first that helps is enough."""


def change_parts(policy: Policy, **changes: Any) -> Policy | None:
    """Return the policy with other parts; None if they contradict each other."""
    try:
        return policy.with_parts(**({"attributes": dict(policy.declared)} | changes))
    except PolicyError:
        return None


def change_column(policy: Policy, name: str, **options: Any) -> Policy | None:
    """Return the policy with other options of a column; None if they are not valid."""
    column = policy.declared[name]
    given = {field: getattr(column, field) for field in column.model_fields_set}
    try:
        changed = Column.model_validate(given | options)
    except ValidationError:
        return None
    return change_parts(policy, attributes=dict(policy.declared) | {name: changed})


def drop_columns(policy: Policy, names: Collection[str]) -> Policy | None:
    """Return the policy without some columns, also in requirements, methods and groups."""
    attributes = {
        name: Column(role=Role.DROP) if name in names and not column.role.is_dropped else column
        for name, column in policy.declared.items()
    }
    groups, renamed = [], dict[str, str | None]()
    for group in policy.together:
        left = tuple(name for name in group.columns if name not in names)
        if left == group.columns:
            groups.append(group)
            continue
        differ = tuple(name for name in group.differ if name in left)
        if len(left) > 1:
            fields = {"min_count": group.min_count, "rare": group.rare, "role": group.role, "differ": differ}
            groups.append(Together(columns=left, **fields))
        renamed[group.title] = None if not left else left[0] if len(left) == 1 else groups[-1].title
    renamed |= dict.fromkeys(names)
    changes = {"together": tuple(groups)} | _renamed(policy, renamed)
    return change_parts(policy, attributes=attributes, **changes)


def _renamed(policy: Policy, names: Mapping[str, str | None]) -> dict[str, Any]:
    """Return requirements and methods with renamed columns; None removes one."""

    def moved(part: Model | Method) -> tuple[str, ...]:
        found = (names.get(name, name) for name in part.on)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    require = [
        model.model_copy(update={"on": moved(model)}) for model in policy.require if moved(model) or not model.on
    ]
    methods = [one.model_copy(update={"on": moved(one)}) for one in policy.methods if moved(one) or not one.on]
    if len(methods) == 1 < len(policy.methods):
        methods = [methods[0].model_copy(update={"on": ()})]
    return {"require": tuple(require), "method": tuple(methods or policy.methods)}


def hide_together(policy: Policy, names: Collection[str]) -> Policy | None:
    """Return the policy with columns (or composites) hidden as one, and rare tuples merged."""
    old = [group for group in policy.together if group.title in names or set(group.columns) & set(names)]
    members = set(names) - {group.title for group in old} | {name for group in old for name in group.columns}
    declared = policy.declared
    columns = tuple(name for name in declared if name in members)
    if not members <= declared.keys() or not 2 <= len(columns) <= MOST_MEMBERS:
        return None
    least = max([COMMON, *(declared[name].min_count for name in columns), *(group.min_count or 1 for group in old)])
    differ = tuple(name for group in old for name in group.differ)
    made = Together(columns=columns, min_count=least, rare="merge", differ=differ)
    kept = tuple(group for group in policy.together if group not in old)
    renamed = _renamed(policy, {group.title: made.title for group in old})
    return change_parts(policy, together=(*kept, made), **renamed)


def ask_more(policy: Policy, names: Collection[str], more: int) -> Policy | None:
    """Return the policy with larger sets for some columns: every l on one of them is raised."""
    require: list[Model] = []
    found = False
    for model in policy.require:
        asked = getattr(model, "l", None)
        mine = tuple(name for name in model.on if name in names)
        if asked is None or not mine:
            require.append(model)
            continue
        found, rest = True, tuple(name for name in model.on if name not in names)
        if rest:
            require.append(model.model_copy(update={"on": rest}))
        require.append(model.model_copy(update={"on": mine, "l": asked + more}))
    return change_parts(policy, require=tuple(require)) if found else None


# ---------------------------------------------------------------------- what may help, by what is wrong


def for_people(policy: Policy) -> Iterator[Remedy]:
    """Yield remedies for a repeated identifier: requirements then count people by it."""
    for name, column in policy.declared.items():
        if column.role is Role.IDENTIFIER:
            people = policy.people.model_copy(update={"key": (name,)})
            yield from _each((f"count people by {name!r}", change_parts(policy, people=people)))


def for_column(policy: Policy, name: str, columns: Sequence[str] = ()) -> Iterator[Remedy]:
    """Yield remedies for disagreements of policy and table about a column, or about columns hidden together."""
    if name in policy.composites:
        members = policy.composites[name]
        yield from _each((f"merge rare tuples of {_named(members)}", hide_together(policy, members)))
        for member in members:
            yield from _each((f"drop {member!r}", drop_columns(policy, [member])))
        return
    absent = [other for other in policy.declared if other not in columns]
    if name not in policy.declared:
        for near in get_close_matches(name, absent, n=1):
            yield from _each((f"use the policy's lines about {near!r} for {name!r}", _respelled(policy, near, name)))
        yield from _each((f"drop {name!r}, which is not in the policy", _with_dropped(policy, name)))
        return
    column = policy.declared[name]
    if name in absent:
        yield from _each(
            (f"remove {name!r} from the policy, because the table does not have it", _without(policy, name))
        )
        return
    if column.missing == "reject":
        yield from _each(("publish missing cells as a category", change_column(policy, name, missing="category")))
    if column.rare == "refuse":
        least = max(column.min_count, COMMON)
        merged = change_column(policy, name, min_count=least, rare="merge")
        yield from _each((f"merge values of {name!r} with fewer than {least} records", merged))
    for bins in BINS:
        words = f"put {name!r} into {bins} bins of about equally many records"
        yield from _each((words, _binned(policy, name, bins)), family="bins")
    yield from _each((f"drop {name!r}", drop_columns(policy, [name])))


def for_dependence(policy: Policy, found: Sequence[Told]) -> Iterator[Remedy]:
    """Yield remedies for a group of columns that disclose each other."""
    order = list(policy.attributes)
    names = sorted({name for one in found for name in one.both}, key=order.index)
    yield from _each((f"hide {_named(names)} together", hide_together(policy, names)))
    if len(names) > 2:
        pair = sorted(found[0].both, key=order.index)
        yield from _each((f"hide {_named(pair)} together", hide_together(policy, pair)))
    hidden = sorted({one.protected for one in found}, key=order.index)
    for more in LARGER:
        words = f"let {more} more {'value' if more == 1 else 'values'} stay possible for {_named(hidden)}"
        yield from _each((words, ask_more(policy, hidden, more)), family="larger")
    for bins in BINS:
        coarser: Policy | None = policy
        for name in names:
            coarser = (None if coarser is None else _binned(coarser, name, bins)) or coarser
        if coarser is not None and coarser is not policy:
            yield from _each((f"put the numeric columns of {_named(names)} into {bins} bins", coarser), family="bins")
    few = list(cover(found, order.index))
    sets = [few] if len(names) > 2 else []
    for leave in [*sets, *([name] for name in names)]:
        members = [member for name in leave for member in policy.composites.get(name, (name,))]
        yield from _each((f"drop {_named(members)}", drop_columns(policy, members)))


def for_method(policy: Policy) -> Iterator[Remedy]:
    """Yield remedies for a method that cannot meet the requirements, or discloses secrets."""
    for share in SUPPRESSION:
        if all(share > getattr(one, "suppression", 1.0) for one in policy.methods if isinstance(one, ClassMethod)):
            methods = [_suppressing(one, share) for one in policy.methods]
            words = f"let the method suppress up to {share:.0%} of the records"
            yield from _each((words, _by(policy, methods)), family="suppression")
    for other in (Mondrian(), Mondrian(blind=True), Hilbert()):
        methods = [
            other.model_copy(update={"on": one.on}) if isinstance(one, ClassMethod) else one for one in policy.methods
        ]
        if methods != list(policy.methods):
            yield from _each((f"use the method {other.title}", _by(policy, methods)))


def for_secrets(policy: Policy, names: Collection[str]) -> Iterator[Remedy]:
    """Yield remedies if no method meets the requirements on some columns: coarser values, or none."""
    secrets = [name for name in policy.protected if name in names] or list(policy.protected)
    for name in secrets:
        if name in policy.declared:
            yield from (one for one in for_column(policy, name, [name]) if not one.words.startswith("drop "))
    for name in secrets:
        members = policy.composites.get(name, (name,))
        yield from _each((f"drop {_named(members)}", drop_columns(policy, members)))


def _each(*found: tuple[str, Policy | None], family: str = "") -> Iterator[Remedy]:
    return (Remedy(words, policy, family) for words, policy in found if policy is not None)


def _by(policy: Policy, methods: Sequence[Method]) -> Policy | None:
    return change_parts(policy, method=tuple(methods))


def _suppressing(method: Method, share: float) -> Method:
    return method.model_copy(update={"suppression": share}) if isinstance(method, ClassMethod) else method


def _with_dropped(policy: Policy, name: str) -> Policy | None:
    return change_parts(policy, attributes=dict(policy.declared) | {name: Column(role=Role.DROP)})


def _respelled(policy: Policy, old: str, new: str) -> Policy | None:
    """Return the policy with another name of a column; None if it is hidden together with others."""
    if any(old in group.columns for group in policy.together):
        return None
    attributes = {new if name == old else name: column for name, column in policy.declared.items()}
    return change_parts(policy, attributes=attributes, **_renamed(policy, {old: new}))


def _without(policy: Policy, name: str) -> Policy | None:
    dropped = drop_columns(policy, [name])
    if dropped is None:
        return None
    return change_parts(dropped, attributes={n: column for n, column in dropped.declared.items() if n != name})


def _binned(policy: Policy, name: str, bins: int) -> Policy | None:
    """Return the policy with a column in bins; None if it has values, a hierarchy or bins already."""
    column = policy.declared.get(name)
    if column is None or column.role is Role.PLAIN or any((column.values, column.hierarchy, column.bins)):
        return None
    return change_column(policy, name, bins=f"quantiles:{bins}")


def _named(names: Collection[str]) -> str:
    return list_names(list(names))
