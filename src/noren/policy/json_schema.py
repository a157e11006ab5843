"""A JSON Schema of the policy file, made from the fields that columns, models and methods declare.

Editors that read JSON Schema for TOML (Even Better TOML in VS Code, Tombi, Neovim with Taplo) complete and check a
policy with it. The schema finds unknown keys, wrong types and values out of range. `Policy.load` finds the rest:
contradictions between parts of the policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from noren.methods import METHODS
from noren.models import MODELS
from noren.policy.options import SECTIONS, Margin
from noren.policy.policy import Policy
from noren.policy.together import Together
from noren.schema.column import Column
from noren.schema.roles import Role

Schema = dict[str, Any]

FILE = "noren.schema.json"
"""The name that drafts expect, beside the policy."""
WRITTEN_AS_TEXT = {"on", "key", "of", "hierarchy", "knowledge"}
"""Keys that take one text where the Python object holds a list or a table."""
MIXED = {"values", "missing_values"}
"""Lists whose numbers and truth values are read as texts."""


class TomlSchema(GenerateJsonSchema):
    """Describes what a file can contain; objects that only Python can pass have no schema."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        return {"not": {}}

    def encode_default(self, dft: Any) -> Any:
        return None


def policy_schema() -> Schema:
    """Return the JSON Schema (draft 7) of a policy file."""
    definitions: Schema = {}
    column = _describe(Column, definitions)
    roles = {"enum": [str(role) for role in Role]}
    methods = _choice(METHODS.values(), "name", definitions)
    method = {"anyOf": [methods, {"enum": list(METHODS)}]}
    together = _describe(Together, definitions)
    properties: Schema = {
        "title": {"type": "string"},
        "attributes": {
            "type": "object",
            "additionalProperties": {"anyOf": [column, roles]},
            "properties": {"together": {"anyOf": [column, roles, {"type": "array", "items": together}]}},
        },
        "require": {"type": "array", "items": _choice(MODELS.values(), "model", definitions)},
        "method": {"anyOf": [method, {"type": "array", "items": method, "minItems": 1}]},
        "mechanism": {"enum": ["judged", "ignored"]},
        "together": {"type": "array", "items": together},
        "margins": {"type": "array", "items": _describe(Margin, definitions)},
        **{name: _describe(kind, definitions) for name, kind in SECTIONS.items()},
    }
    for name, described in properties.items():
        described["description"] = Policy.model_fields[name].description
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Policy of Noren",
        "type": "object",
        "additionalProperties": False,
        "required": ["attributes"],
        "properties": properties,
        "definitions": definitions,
    }


def _choice(kinds: Iterable[type[BaseModel]], key: str, definitions: Schema) -> Schema:
    """Return a schema of exactly one of several tables, chosen by the text under a key."""
    return {"oneOf": [_describe(kind, definitions) | {"required": [key, *_needed(kind, key)]} for kind in kinds]}


def _needed(kind: type[BaseModel], key: str) -> list[str]:
    return [name for name, field in kind.model_fields.items() if field.is_required() and name != key]


def _describe(kind: type[BaseModel], definitions: Schema) -> Schema:
    """Return the schema of one table; what it refers to is added to `definitions`."""
    made = kind.model_json_schema(schema_generator=TomlSchema, ref_template="#/definitions/{model}")
    definitions |= {name: _relax(part) for name, part in made.pop("$defs", {}).items()}
    return _relax(made)


def _relax(table: Schema) -> Schema:
    """Accept what the policy's reader converts to the declared type, and remove defaults, which editors would
    insert."""
    for name, field in table.get("properties", {}).items():
        field.pop("default", None)
        if name in WRITTEN_AS_TEXT:
            description = field.pop("description", None)
            table["properties"][name] = {"anyOf": [field, {"type": "string"}], "description": description}
        if name in MIXED:
            table["properties"][name] = {"type": "array", "description": field.get("description")}
    return table
