"""The JSON Schema of a policy accepts what Noren accepts, and refuses what editors should underline."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

import noren as nr
from noren.policy import policy_schema
from noren.sources.source import open_source
from noren.workflow.advice import draft

ROOT = Path(__file__).parents[3]
CHECK = Draft7Validator(policy_schema())


def blocks() -> list[str]:
    """Every whole policy of the documentation and of the examples."""
    pages = [text for page in sorted(ROOT.glob("docs/*.md")) for text in _fenced(page)]
    return [*pages, *(path.read_text() for path in sorted(ROOT.glob("examples/**/*.toml")))]


def _fenced(page: Path) -> list[str]:
    return [text for text in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL) if "[attributes]" in text]


def test_the_schema_is_one():
    Draft7Validator.check_schema(policy_schema())


@pytest.mark.parametrize("text", blocks())
def test_written_policies_are_accepted(text: str):
    assert list(CHECK.iter_errors(tomllib.loads(text))) == []


def test_a_draft_is_accepted_and_names_the_schema(tmp_path: Path):
    path = tmp_path / "people.csv"
    path.write_text("name,age,ill\n" + "".join(f"n{i},{20 + i % 50},d{i % 7}\n" for i in range(400)))
    text = draft(open_source(path))
    assert text.startswith("#:schema ./noren.schema.json\n")
    assert list(CHECK.iter_errors(tomllib.loads(text))) == []


def test_every_model_and_method_is_known():
    for name in nr.models.MODELS:
        assert f'"const": "{name}"' in _text(policy_schema()), name
    for name in nr.methods.METHODS:
        assert f'"const": "{name}"' in _text(policy_schema()), name


def _text(schema: dict[str, Any]) -> str:
    import json

    return json.dumps(schema)


def policy(**parts: Any) -> dict[str, Any]:
    whole = {
        "attributes": {"age": {"role": "quasi-identifier"}, "ill": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 5}],
        "method": {"name": "mondrian"},
    }
    return whole | parts


@pytest.mark.parametrize(
    "wrong",
    [
        policy(attribute={}),
        policy(attributes={"age": {"role": "quasi"}}),
        policy(attributes={"age": {"role": "sensitive", "minimum": 3}}),
        policy(attributes={"age": {"role": "sensitive", "min_count": "three"}}),
        policy(require=[{"model": "k-anonimity", "k": 5}]),
        policy(require=[{"model": "k-anonymity"}]),
        policy(require=[{"model": "k-anonymity", "k": 1}]),
        policy(require=[{"model": "t-closeness", "on": "ill", "t": "0.3"}]),
        policy(method={"name": "mondrain"}),
        policy(method={"name": "mondrian", "blid": True}),
        policy(people={"keys": "id"}),
        policy(mechanism="judge"),
        {"require": []},
    ],
)
def test_mistakes_are_underlined(wrong: dict[str, Any]):
    assert list(CHECK.iter_errors(policy())) == []
    assert list(CHECK.iter_errors(wrong))


def test_keys_have_their_descriptions():
    column = policy_schema()["properties"]["attributes"]["additionalProperties"]["anyOf"][0]
    for name, field in nr.schema.column.Column.model_fields.items():
        assert column["properties"][name]["description"] == field.description
