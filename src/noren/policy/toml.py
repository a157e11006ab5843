"""Writes a policy as TOML text."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.errors import PolicyError, Problem
from noren.policy.options import SECTIONS
from noren.policy.policy import Policy
from noren.schema.column import Column, HierarchySpec, KnowledgeSpec
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge

if TYPE_CHECKING:
    from noren.methods.base import Method
    from noren.policy.policy import Policy


BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    """Return a TOML key, quoted if necessary."""
    return name if BARE.fullmatch(name) else text(name)


def text(item: str) -> str:
    """Return a quoted TOML string: JSON's escapes, and the delete character escaped."""
    return json.dumps(item, ensure_ascii=False).replace("\x7f", "\\u007f")


def value(item: Any) -> str:
    """Return a TOML value on one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, dict):
        return "{ " + ", ".join(f"{key(k)} = {value(v)}" for k, v in item.items()) + " }"
    if isinstance(item, list | tuple):
        return "[" + ", ".join(value(v) for v in item) + "]"
    if isinstance(item, int | float):
        return repr(item)
    return text(item)


def tree_of(hierarchy: Hierarchy) -> dict[str, Any]:
    """Return a hierarchy as the nested table that `tree` reads."""
    root: dict[str, Any] = {}
    for path in zip(*hierarchy.levels[:-1], strict=True):
        node = root
        for label in reversed(path[2:]):
            node = node.setdefault(label, {})
        if len(path) > 1:
            node.setdefault(path[1], []).append(path[0])
        else:
            root.setdefault(hierarchy.levels[-1][0], []).append(path[0])
    return root


def attribute_text(attribute: Column) -> str:
    fields = attribute.model_dump(mode="json", exclude_defaults=True, exclude={"hierarchy", "knowledge"})
    if isinstance(attribute.knowledge, Knowledge):
        raise PolicyError([Problem("attributes", "a knowledge table given as an object cannot be written to a file.",
                                   "Write it to a CSV of label,term and use that file.")])  # fmt: skip
    if attribute.knowledge is not None:
        told = attribute.knowledge.model_dump(mode="json", exclude_none=True)
        fields["knowledge"] = told if len(told) > 1 else told["csv"]
    spec = attribute.hierarchy
    if isinstance(spec, Hierarchy):
        fields["hierarchy"] = {"tree": tree_of(spec)}
    elif spec is not None:
        given = spec.model_dump(mode="json", exclude_none=True)
        fields["hierarchy"] = given.get("csv", given)
    return value(fields)


def policy_text(policy: Policy) -> str:
    lines: list[str] = []
    if policy.title:
        lines += [f"title = {value(policy.title)}", ""]
    if policy.mechanism == "ignored":
        lines += [f"mechanism = {value(policy.mechanism)}", ""]
    if policy.together and all(group.is_plain for group in policy.together):
        lists = [list(group.columns) for group in policy.together]
        lines += [f"together = {value(lists[0] if len(lists) == 1 else lists)}", ""]
    lines.append("[attributes]")
    lines += [f"{key(name)} = {attribute_text(attribute)}" for name, attribute in policy.declared.items()]
    for group in policy.together if not all(group.is_plain for group in policy.together) else ():
        fields = group.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        lines += ["", "[[together]]", *(f"{key(name)} = {value(item)}" for name, item in fields.items())]
    for model in policy.require:
        fields = model.model_dump(mode="json")
        on = fields.pop("on")
        lines += ["", "[[require]]", f"model = {value(fields.pop('model'))}"]
        if on:
            lines.append(f"on = {value(on[0] if len(on) == 1 else on)}")
        lines += [f"{key(name)} = {value(item)}" for name, item in fields.items() if item is not None]
    for method in policy.methods:
        lines += ["", "[method]" if len(policy.methods) == 1 else "[[method]]", *method_lines(method)]
    for margin in policy.margins:
        fields = margin.model_dump(mode="json", exclude_defaults=True)
        lines += ["", "[[margins]]", *(f"{key(name)} = {value(item)}" for name, item in fields.items())]
    for section in SECTIONS:
        fields = getattr(policy, section).model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        fields = {name: item for name, item in fields.items() if item not in ({}, [])}
        if fields:
            lines += ["", f"[{section}]", *(f"{key(name)} = {value(item)}" for name, item in fields.items())]
    return "\n".join(lines) + "\n"


def method_lines(method: Method, changed: bool = False) -> list[str]:
    """Return the options of a method, or with `changed` only those that differ from the default."""
    fields = method.model_dump(mode="json", exclude_none=True, exclude_defaults=changed)
    fields = {"name": method.name, **{n: item for n, item in fields.items() if n != "name" and item not in ({}, [])}}
    return [f"{key(name)} = {value(item)}" for name, item in fields.items()]


def text_for(policy: Policy, folder: Path) -> str:
    """Return the policy as TOML for a file in another folder, with paths adjusted."""

    def move_path(path: str) -> str:
        return path if Path(path).is_absolute() else Path(os.path.relpath(policy.base / path, folder)).as_posix()

    def column(given: Column) -> Column:
        changed: dict[str, object] = {}
        tree, known = given.hierarchy, given.knowledge
        if isinstance(tree, HierarchySpec) and tree.csv is not None:
            changed["hierarchy"] = tree.model_copy(update={"csv": move_path(tree.csv)})
        if isinstance(known, KnowledgeSpec):
            priors = None if known.priors is None else move_path(known.priors)
            changed["knowledge"] = known.model_copy(update={"csv": move_path(known.csv), "priors": priors})
        return given.model_copy(update=changed) if changed else given

    secret = policy.randomness.secret
    randomness = policy.randomness.model_copy(update={"secret": None if secret is None else move_path(secret)})
    attributes = {name: column(given) for name, given in policy.attributes.items()}
    return policy.model_copy(update={"attributes": attributes, "randomness": randomness}).to_toml()
