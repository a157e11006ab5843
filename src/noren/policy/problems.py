"""The problems of a policy, as messages with hints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from noren.errors import Problem, list_columns
from noren.methods.base import Method
from noren.methods.parts import idle_problems
from noren.methods.suppress import Suppress
from noren.models.base import Model
from noren.models.term_check import TermModel
from noren.schema.column import Column, HierarchySpec, KnowledgeSpec, MatrixSpec, SemilatticeSpec
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role

INNER: dict[str, tuple[type[BaseModel], ...]] = {
    "hierarchy": (HierarchySpec,),
    "distance": (MatrixSpec, SemilatticeSpec),
    "knowledge": (KnowledgeSpec,),
}
"""Keys of an attribute that may hold a table of their own; pydantic names the form it was read as after the key."""


def closest(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the most similar known word, or all of them."""
    names = list(known)
    family = [name for name in names if len(word) >= 4 and word != name and name.endswith(word.lower())]
    if len(family) > 1:
        return f"Did you mean {', '.join(map(repr, family[:-1]))} or {family[-1]!r}?"
    near = get_close_matches(word, names, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"Known: {', '.join(names)}." if names else ""


def no_column(where: str, word: str, columns: Iterable[str]) -> Problem:
    """Return the problem of a column that is not in the policy, with similar names."""
    names = list(columns)
    near = get_close_matches(word, names, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known: {list_columns(names)}." if names else ""
    return Problem(where, f"no column {word!r} in [attributes].", hint)


def from_validation(where: str, error: ValidationError, kind: type[BaseModel]) -> list[Problem]:
    """Return one problem per invalid field, with the field's description as the hint."""
    out: list[Problem] = []
    seen: set[str] = set()
    for item in error.errors():
        path = [str(part) for part in item["loc"]]
        owner = kind
        if kind is Column and path and path[0] in INNER:
            form = path.pop(1) if len(path) > 1 else ""
            owner = next((spec for spec in INNER[path[0]] if spec.__name__ == form and len(path) > 1), kind)
        place = ".".join([where, *path])
        if place in seen:
            continue
        seen.add(place)
        name, last = (path[0], path[-1]) if path else ("", "")
        field = owner.model_fields.get(name if owner is kind else last)
        described = (field.description or "") if field is not None else ""
        if item["type"] == "missing":
            out.append(Problem(place, "missing.", described))
        elif item["type"] == "extra_forbidden":
            known = [field for spec in INNER[path[0]] for field in spec.model_fields] if owner is not kind else []
            hint = described if owner is kind and len(path) > 1 else closest(last, known or owner.model_fields)
            out.append(Problem(place, f"unknown key {last!r}.", hint))
        elif name == "role":
            out.append(Problem(place, f"unknown role {item['input']!r}.", closest(str(item["input"]), map(str, Role))))
        elif item["type"] == "value_error":
            out.append(Problem(place, f"{item['ctx']['error']}.", described))
        else:
            out.append(Problem(place, f"{item['msg']}; got {_short_repr(item['input'])}.", described))
    return out


def _short_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def cross_problems(
    attributes: Mapping[str, Column], require: Mapping[int, Model], parts: Sequence[Any], broken: set[str]
) -> list[Problem]:
    """Return contradictions between the parts of a policy. Requirements come with their numbers in the file."""
    out: list[Problem] = []
    seen: dict[tuple[str, str], int] = {}
    protected: set[str] = set()
    for number, model in require.items():
        for name in model.on:
            where = f"require[{number}].on"
            if model.about not in ("classes", "release") and not model.of_mechanism:
                protected.add(name)
            kind = model.identity
            if (kind, name) in seen:
                message = f"{model.model} on {name!r} is already in require[{seen[kind, name]}]."
                out.append(Problem(where, message, "Keep the stricter one."))
            seen.setdefault((kind, name), number)
            if name in attributes:
                out += _role_problem(where, name, attributes[name], model, parts)
            elif name not in broken:
                out.append(no_column(where, name, attributes))
    for name, attribute in attributes.items():
        if attribute.role.needs_requirement and name not in protected and name not in broken:
            out.append(
                Problem(
                    f"attributes.{name}",
                    f"a column of role {attribute.role} without a requirement would be unprotected.",
                    f"Add [[require]] with on = \"{name}\", or give it the role 'plain' or 'quasi-identifier'.",
                )
            )
    weights = [name for name, attribute in attributes.items() if attribute.weight]
    if len(weights) > 1:
        message = f"{len(weights)} columns are weights: {', '.join(weights)}."
        hint = "Keep weight = true on one of them; a release has one weight per record."
        out.append(Problem(f"attributes.{weights[1]}.weight", message, hint))
    if attributes and all(a.role.is_dropped for a in attributes.values()) and not broken:
        out.append(Problem("attributes", "every column is dropped, so nothing is left to publish."))
    out += idle_problems(parts) + _drawn_keys(attributes, parts)
    unsure = {f"method.{part}.{name}" for part in ("parameters", "designs") for name in broken}
    unsure |= {"method.form", "method.name", "attributes"} if broken else set()
    for part in parts:
        roles = {name: attributes[name].role for name in part.columns}
        if len(parts) == 1:
            roles = {name: column.role for name, column in attributes.items()}
        found = [p for p in part.method.problems(roles, list(part.requirements)) if p.where not in unsure]
        out += [renumber_problem(p, part.requirements, list(require.values())) for p in found]
    return out


def _drawn_keys(attributes: Mapping[str, Column], parts: Sequence[Any]) -> list[Problem]:
    """Return quasi-identifiers that are published as sets although classes are required."""
    both = Role.SENSITIVE_QUASI_IDENTIFIER
    grouping = [model for part in parts if part.method.forms_classes for model in part.requirements]
    if len(parts) < 2 or all(model.about == "classes" and model.on for model in grouping):
        return []
    drawn = [name for part in parts if not part.method.forms_classes for name in part.columns]
    hint = "Give it the role 'sensitive', or leave it to the method that forms classes."
    return [
        Problem(
            "method",
            f"{name!r} identifies people but is published as decoy sets, so equivalence classes cannot be formed.",
            hint,
        )
        for name in drawn
        if attributes[name].role is both
    ]


def renumber_problem(problem: Problem, some: Sequence[Model], requirements: Sequence[Model]) -> Problem:
    """Return a problem with the number of its requirement in the whole policy."""
    at = re.match(r"require\[(\d+)\]", problem.where)
    if at is None or int(at[1]) > len(some):
        return problem
    model = some[int(at[1]) - 1]
    number = next((i for i, other in enumerate(requirements, 1) if other is model or _cut(other, model)), None)
    if number is None:
        return problem
    return replace(problem, where=f"require[{number}]{problem.where[at.end() :]}")


def _cut(whole: Model, part: Model) -> bool:
    """Return whether one requirement is the other on some of its columns."""
    same = whole.model == part.model and whole.parameters() == part.parameters()
    return same and set(part.on) <= set(whole.on)


def sharing_problems(
    attributes: Mapping[str, Column], require: Mapping[int, Model], methods: Sequence[Method]
) -> list[Problem]:
    """Return problems of several methods in a release: each needs its own columns, and at most one may form classes."""
    out: list[Problem] = []
    owner: dict[str, int] = {}
    for number, method in enumerate(methods, 1):
        for name in method.on:
            where = f"method[{number}].on"
            if name not in attributes:
                out.append(no_column(where, name, attributes))
            elif name in owner:
                message = f"{name!r} belongs to method[{owner[name]}] already."
                out.append(Problem(where, message, "List the column in one method only."))
            owner.setdefault(name, number)
    if sum(not method.on for method in methods) > 1:
        hint = "Give each of them on = [...]; only one may do without it."
        out.append(Problem("method", "several methods have no `on`.", hint))
    for what, classes in (("form classes", True), ("draw", False)):
        if sum(method.forms_classes is classes for method in methods) > 1:
            message = f"several methods {what}, but a release can have only one of them."
            out.append(
                Problem("method", message, "Keep one method that generalises or groups, and one that draws decoys.")
            )
    for number, model in require.items():
        whose = {owner.get(name, 0) for name in model.on}
        if model.together and len(whose) > 1:
            message = f"{model.model} covers columns that different methods treat."
            out.append(Problem(f"require[{number}].on", message, "List columns of one method."))
    if any(getattr(method, "form", "sets") == "records" for method in methods):
        out.append(Problem("method", "shuffled records cannot be combined with another method.", 'Use form = "sets".'))
    return out


def _role_problem(where: str, name: str, attribute: Column, model: Model, parts: Sequence[Any]) -> list[Problem]:
    role = attribute.role
    if model.about == "classes":
        return _class_problem(where, name, role, model)
    if (model.about == "terms") != (role is Role.QUASI_SENSITIVE) and not role.is_dropped:
        return [_term_problem(where, name, role, model)]
    if role.is_dropped:
        hint = "Remove the requirement, or give the column another role."
        return [Problem(where, f"{name!r} has the role {role} and is never published.", hint)]
    if not role.needs_requirement:
        hint = f"Give {name!r} the role 'sensitive' or 'sensitive-quasi-identifier', or remove the requirement."
        return [Problem(where, f"{name!r} has the role {role}, which is published exactly.", hint)]
    out: list[Problem] = []
    size = None if attribute.values is None else len(attribute.values)
    if attribute.edges is not None:
        size = len(attribute.edges) - 1
    sets = any(not part.method.forms_classes and name in part.columns for part in parts)
    if sets and size is not None and model.least_set_size > size + (attribute.missing == "category"):
        message = f"{model.model} {model.required:g} exceeds the {size} values declared for {name!r}."
        remedy = f"Lower it to at most {size - 1}, or declare more values." if size > 2 else "Declare more values."
        out.append(Problem(where, message, remedy))
    if "distance" in model.needs and attribute.distance == "equal":
        hint = f'Give {name!r} distance = "ordinal", "numeric", "tree", a matrix or a semilattice.'
        out.append(Problem(where, f"semantic diversity needs a distance between the values of {name!r}.", hint))
    if "tree" in model.needs and attribute.hierarchy is None:
        what = model.model if model.identity == model.model else "closeness over a tree"
        remedy = 'Add hierarchy = "file.csv"' + (', or use distance = "equal".' if what != model.model else ".")
        out.append(Problem(where, f"{what} needs a hierarchy of {name!r}.", remedy))
    if "order" in model.needs and not _is_ordered(attribute):
        hint = f'Set distance = "ordinal" (and values, in order) for {name!r}, or distance = "equal" here.'
        out.append(Problem(where, f"ordered closeness needs an order, but none is declared for {name!r}.", hint))
    return out


def _term_problem(where: str, name: str, role: Role, model: Model) -> Problem:
    """Return the problem of a requirement on terms for another column, or the reverse."""
    if model.about == "terms":
        message = f"{model.model} needs a column of terms with a knowledge table, but {name!r} has the role {role}."
        return Problem(where, message, f"Give {name!r} the role 'quasi-sensitive' and a knowledge table.")
    message = f"{name!r} holds sets of terms, which {model.model} cannot judge."
    return Problem(where, message, 'Use model = "qs-diversity" or "qs-closeness".')


def member_problems(attributes: Mapping[str, Column]) -> list[Problem]:
    """Return the problem of a yes/no column that is in two sets of terms, or also listed by itself."""
    out = []
    owner: dict[str, str] = {}
    for name, attribute in attributes.items():
        for column in attribute.columns or ():
            where = f"attributes.{name}.columns"
            if column in attributes:
                what = "the set itself" if column == name else "a column of its own under [attributes]"
                hint = "Give the set a name that no column has, and list its columns only in the set."
                out.append(Problem(where, f"names {column!r}, which is {what}.", hint))
            elif column in owner:
                message = f"names {column!r}, which belongs to the set {owner[column]!r} already."
                out.append(Problem(where, message, "List the column in one set only."))
            owner.setdefault(column, name)
    return out


def knowledge_problems(
    knowledge: Mapping[str, Knowledge],
    attributes: Mapping[str, Column],
    require: Mapping[int, Model],
    methods: Sequence[Method],
) -> list[Problem]:
    """Return problems of knowledge tables: shared labels, searches that do not support weights, and too few labels."""
    out = _search_problems(knowledge, attributes, methods)
    asked: dict[int, tuple[str, Any]] = {}
    for number, model in require.items():
        for name in model.on if model.about == "terms" and methods[0].name == "suppress" else ():
            if name in knowledge:
                first, wanted = asked.setdefault(id(knowledge[name]), (name, model.parameters()))
                if first != name and wanted != model.parameters():
                    message = (
                        f"{first!r} and {name!r} share a knowledge table, so 'suppress' needs the same requirement for "
                        "both."
                    )
                    hint = 'List both in one requirement, or use "mondrian".'
                    out.append(Problem(f"require[{number}].on", message, hint))
    firsts = [n for i, n in enumerate(knowledge) if all(knowledge[n] is not knowledge[m] for m in list(knowledge)[:i])]
    for i, name in enumerate(firsts):
        for other in firsts[:i]:
            shared = len(set(knowledge[name].labels) & set(knowledge[other].labels))
            if shared:
                message = (
                    f"its knowledge table shares {shared} labels with that of {other!r}, so an adversary can combine "
                    "both columns."
                )
                hint = "Write both tables into one file and use it for both columns, so that they are judged together."
                out.append(Problem(f"attributes.{name}.knowledge", message, hint))
    for number, model in require.items():
        for name in model.on:
            if isinstance(model, TermModel) and name in knowledge and model.tail_from > len(knowledge[name].labels):
                message = f"l = {model.tail_from} exceeds the {len(knowledge[name].labels)} labels of {name!r}."
                out.append(Problem(f"require[{number}].l", message, "Lower it, or give a knowledge table with more."))
    return out


def _search_problems(
    knowledge: Mapping[str, Knowledge], attributes: Mapping[str, Column], methods: Sequence[Method]
) -> list[Problem]:
    """Return problems of searches on label sets with pair weights, and of term weights for unknown terms."""
    out: list[Problem] = []
    known = {term for found in knowledge.values() for term in found.terms}
    unread = any(column.knowledge is not None and name not in knowledge for name, column in attributes.items())
    for method in methods:
        if not isinstance(method, Suppress):
            continue
        if method.search != "best" and (paired := [name for name in knowledge if knowledge[name].pairs is not None]):
            message = f"search {method.search!r} works on label sets, but {paired[0]!r} has weights of pairs."
            out.append(Problem("method.search", message, 'Use search = "best", or remove pair_weight from the file.'))
        for term in method.term_weights if not unread else ():
            if term not in known:
                near = get_close_matches(term, known, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else "Spell terms as in the knowledge table."
                out.append(Problem(f"method.term_weights.{term}", "the term is in no knowledge table.", hint))
    return out


def _class_problem(where: str, name: str, role: Role, model: Model) -> list[Problem]:
    """Return the problem of a requirement on quasi-identifiers that names other columns."""
    if role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER):
        return []
    hint = "Remove `on`; the requirement then covers all quasi-identifiers."
    return [Problem(where, f"{model.model} covers quasi-identifiers, but {name!r} has the role {role}.", hint)]


def _is_ordered(attribute: Column) -> bool:
    return attribute.distance in ("ordinal", "numeric") or attribute.bins is not None
