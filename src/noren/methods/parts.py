"""Several methods in one release: which columns and requirements belong to which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from noren.engines import Plan, Table
from noren.errors import PolicyError, Problem
from noren.methods.base import Method
from noren.models.base import Model, select_searchable
from noren.progress import Stage, quiet
from noren.schema.column import Column
from noren.schema.roles import Role


class Part(NamedTuple):
    """The task of one method: its columns and requirements."""

    method: Method
    columns: tuple[str, ...]
    requirements: tuple[Model, ...]


def shared(attributes: Mapping[str, Column], require: Sequence[Model], methods: Sequence[Method]) -> list[Part]:
    """Assign columns and requirements to the methods.

    A method that names no columns takes those that no other names. A requirement goes to the method of its columns,
    one on all quasi-identifiers to the method that forms classes, one on the whole release to none.
    """
    require = select_searchable(require, any(method.chooses for method in methods))
    everything = tuple(name for name, column in attributes.items() if not column.role.is_dropped)
    if len(methods) == 1:
        return [Part(methods[0], everything, tuple(require))]
    taken = {name for method in methods for name in method.on}
    out = []
    for method in methods:
        own = method.on or tuple(name for name in everything if name not in taken)
        asked: list[Model] = []
        for model in require:
            mine = tuple(name for name in model.on if name in own)
            if (not model.on and method.forms_classes) or (mine == model.on and mine):
                asked.append(model)
            elif mine and not model.together:
                asked.append(model.model_copy(update={"on": mine}))
        out.append(Part(method, own, tuple(asked)))
    return out


def idle_problems(parts: Sequence[Part]) -> list[Problem]:
    """Return the problems of methods that have nothing to do in a release."""
    hint = "Add a requirement on its columns, or remove the method."
    return [
        Problem("method", f"the columns of {part.method.name!r} have no requirement.", hint)
        for part in parts
        if len(parts) > 1 and not part.requirements
    ]


def paired(grouping: Method, drawing: Method, columns: Mapping[str, Column]) -> tuple[Method, Method] | None:
    """Return a method of classes combined with one that draws the secrets; None if there is no secret."""
    secrets = tuple(name for name, column in columns.items() if column.role is Role.SENSITIVE)
    if not secrets:
        return None
    return grouping, drawing.model_copy(update={"on": secrets})


def together(table: Table, parts: Sequence[Part], *, stage: Stage = quiet) -> Plan:
    """Merge the decisions of the methods, each for its own columns, into one plan."""
    if idle := idle_problems(parts):
        raise PolicyError(idle)
    plans = []
    for part in parts:
        own = table.asking(part.requirements) if len(parts) == 1 else table.part(part.columns, part.requirements)
        roles = {name: column.role for name, column in table.columns.items() if name in part.columns}
        if problems := part.method.problems(roles, part.requirements):
            raise PolicyError(problems)
        with stage("Generalising" if part.method.forms_classes else "Choosing designs", None) as meter:
            plans.append(part.method.plan(own, meter=meter))
    return plans[0] if len(plans) == 1 else Plan.merged(plans)
