"""The reference of the policy file says what the code declares."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from pydantic import BaseModel

import noren
from noren.audit import ATTACKS
from noren.cli.main import GROUPS
from noren.methods import METHODS
from noren.models import MODELS
from noren.policy.options import DataOptions, RandomnessOptions
from noren.policy.together import Together
from noren.schema.column import Column

ROOT = Path(noren.__file__).parents[2]
DOCS = ROOT / "docs"
SPEC = spec_from_file_location("reference", ROOT / ".ci/reference.py")
assert SPEC is not None
assert SPEC.loader is not None
reference = module_from_spec(SPEC)
SPEC.loader.exec_module(reference)
PAGES = {name: (DOCS / name).read_text(encoding="utf-8") for name in ("policy.md", "auditor.md")}
DECLARED: list[type[BaseModel]] = [
    *MODELS.values(),
    *METHODS.values(),
    Column,
    Together,
    DataOptions,
    RandomnessOptions,
]


@pytest.fixture
def page() -> str:
    return PAGES["policy.md"]


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_are_up_to_date(name: str) -> None:
    assert reference.filled(PAGES[name]) == PAGES[name], "make reference"


def test_the_pages_have_every_table_once() -> None:
    text = "".join(PAGES.values())
    assert sorted(re.findall(r"<!-- generated: ([\w-]+) -->", text)) == sorted(reference.PARTS)
    assert text.count("<!-- end -->") == len(reference.PARTS)


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.__name__)
def test_every_field_is_explained(kind: type[BaseModel], page: str) -> None:
    for name, field in kind.model_fields.items():
        if name in ("model", "name"):
            assert f"`{field.default}`" in page
        elif name == "on":
            assert "`on`" in page
        else:
            assert field.description, f"{kind.__name__}.{name} has no description"
            assert f"`{name}`" in page
            assert field.description.rstrip(".").replace("|", "\\|") in page


def test_bounds_choices_and_defaults_are_told() -> None:
    assert reference.words_of(int | None) == "whole number"
    assert reference.words_of(tuple[tuple[float, ...], ...]) == "list of lists of numbers"
    assert "| `suppression` | number at least 0 and below 1 | `0.0` |" in reference.method_options()
    assert '| `missing` | `category`, `drop`, `reject` | `"category"` |' in reference.attributes()
    assert "`tau` (number above 0 and below 1)" in reference.models()


def test_every_model_is_judged_on_some_cells() -> None:
    lines = [line.strip("| ").split(" | ") for line in reference.judged().splitlines()[2:]]
    assert {name for name, *grounds in lines if "yes" not in grounds} == set()
    assert ["`belief`", "yes", "no", "yes", "yes", "no"] in lines


def commands() -> str:
    """The commands of this distribution as the page about them lists them."""
    rows = [[group, f"`{name}`", text] for group, listed in GROUPS.items() for name, (_, text) in listed.items()]
    return reference.grid(("for", "command", "does"), rows)


def test_the_page_of_commands_lists_all_of_them() -> None:
    assert commands() in (DOCS / "commands.md").read_text(encoding="utf-8"), commands()


def test_the_page_for_auditors_has_every_attack() -> None:
    assert {name for name in ATTACKS if f"| `{name}` |" not in PAGES["auditor.md"]} == set()
