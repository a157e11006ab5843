"""The page of a release has every sentence where it is true, and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.release.manifest import Manifest, PublishedMargin, VerdictEntry
from noren.release.readme import SIGNED, UNSIGNED, _commands, _design_words, code, readme
from noren.statements import SetCells, Statement
from tests.statements import exact_column, group_column, node_column, open_column, set_column

SENTENCES = {
    "careful": "Do not count cells as if they were the truth.",
    "weighed": "In `w` stands how many people",
    "json": "A set (a JSON array) holds values",
    "list": "A set (a list) holds values",
    "number": "A set (a number, under which `sets.parquet` has the list) holds values",
    "node": "A general value such as",
    "group": "A group is a number without a meaning",
    "fakes": "3 entries of those tables are counterfeits",
    "plain": "The cells are as the table above says.",
    "several": "; a person may have several",
    "suppressed": "; 1,200 people were left out to protect the others",
    "margins": "Counts with noise stand in `datapackage.json`",
    "no verdict": "| none | | | |",
    "holds": "| holds |",
    "fails": "| fails |",
    "signed": SIGNED,
    "signature": "| `datapackage.sig` |",
    "unsigned": UNSIGNED,
    "no title": "# A release\n",
    "title": "# `Our town`\n",
}
EXACT, DRAWN = exact_column("w", 3), set_column("ill", 4, DecoyDesign(d=4, eta=2))
NUMBERED = DRAWN.with_table(SetCells.from_codes(4, np.array([[0, 1], [1, 2]])))
FAKES = replace(group_column("g", 3), counterfeits={0: 2, 2: 1})
ALWAYS = {"no title", "no verdict", "unsigned"}


def verdict(holds: bool) -> VerdictEntry:
    return VerdictEntry(model="k-anonymity", column="w", required=2, achieved=2, holds=holds, basis="counted")


@pytest.mark.parametrize(
    ("columns", "said", "data", "found"),
    [
        ([EXACT], {}, "data.parquet", ALWAYS | {"plain"}),
        ([EXACT], {"weight": "w"}, "data.parquet", ALWAYS | {"careful", "weighed"}),
        ([EXACT, DRAWN], {}, "data.parquet", ALWAYS | {"careful", "list"}),
        ([EXACT, DRAWN], {}, "data.csv", ALWAYS | {"careful", "json"}),
        ([EXACT, NUMBERED], {}, "data.parquet", ALWAYS | {"careful", "number"}),
        ([node_column("n", 3), EXACT], {}, "data.parquet", ALWAYS | {"careful", "node"}),
        ([group_column("g", 3), open_column("o")], {}, "data.csv", ALWAYS | {"careful", "group"}),
        ([FAKES], {}, "data.csv", ALWAYS | {"careful", "group", "fakes"}),
        ([EXACT], {"rows_are_people": False}, "data.csv", ALWAYS | {"plain", "several"}),
        ([EXACT], {"suppressed": 1200}, "data.csv", ALWAYS | {"plain", "suppressed"}),
        ([EXACT], {"title": "Our town"}, "data.csv", (ALWAYS | {"plain", "title"}) - {"no title"}),
        ([EXACT], {"verdicts": (verdict(True),)}, "data.csv", (ALWAYS | {"plain", "holds"}) - {"no verdict"}),
        ([EXACT], {"verdicts": (verdict(False),)}, "data.csv", (ALWAYS | {"plain", "fails"}) - {"no verdict"}),
        ([EXACT], {"signed": True}, "data.csv", (ALWAYS | {"plain", "signed", "signature"}) - {"unsigned"}),
        (
            [EXACT],
            {"margins": (PublishedMargin(of=("w",), epsilon=0.5, sensitivity=2, counts=(1, 2, 3)),)},
            "data.csv",
            ALWAYS | {"plain", "margins"},
        ),
    ],
)
def test_a_page_has_the_sentences_that_are_true(
    columns: list[Statement], said: dict[str, Any], data: str, found: set[str]
) -> None:
    signed = said.pop("signed", False)
    common: dict[str, Any] = {"requirements": (), "methods": (), "randomness": "fresh", "verdicts": ()}
    manifest = Manifest(noren="1.0", records=7200, columns=tuple(columns), **(common | said))
    page = readme(manifest, data, [("side.csv", "words")], {one.name: one.name for one in columns}, signed)
    assert {name for name, sentence in SENTENCES.items() if sentence in page} == found
    assert "holds 7,200 records" in page
    assert f'release.estimate(["{columns[0].name}"])' in page
    assert "| `side.csv` | words |" in page


def test_what_designs_tell_is_said_of_those_that_tell_something() -> None:
    prior = DecoyDesign(d=4, eta=2, p=0.5, prior="data")
    assert (
        _design_words([EXACT, set_column("ill", 4, prior)])
        == f"What the published parameters tell: `ill`: {prior.tells}.\n\n"
    )
    assert _design_words([EXACT, DRAWN]) == ""


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a|b", "`a\\|b`"), ("a`b", "`a'b`"), ("  ", "`(blank)`"), ("", "`(blank)`"), ("a\x00", '`"a\\u0000"`')],
)
def test_a_name_stays_in_its_code_span(name: str, shown: str) -> None:
    assert code(name) == shown


@pytest.mark.parametrize(
    ("data", "polars", "r", "sql"),
    [
        ("data.csv", 'pl.read_csv("data.csv")', 'read.csv("data.csv", ', "read_csv('data.csv')"),
        ("data.parquet", 'pl.read_parquet("data.parquet")', 'read_parquet("data.parquet")', "FROM 'data.parquet'"),
        ("data-*.parquet", 'pl.read_parquet("data-*.parquet")', "Sys.glob", "FROM 'data-*.parquet'"),
    ],
)
def test_commands_are_those_of_the_file(data: str, polars: str, r: str, sql: str) -> None:
    found = _commands(data, {})
    assert polars in found["polars"]
    assert r in found["r"]
    assert sql in found["sql"]
    assert ("Sys.glob" in found["r"]) == ("*" in data)


def test_numbered_sets_are_joined_by_a_name_that_sql_can_write() -> None:
    found = _commands("data.parquet", {"a b": "a b_set", "ill": "ill_set"})
    assert 'data."ill_set" = sets.id' in found["sql"]
    assert 'data."COLUMN_set" = sets.id' in _commands("data.parquet", {"a b": "a b_set"})["sql"]
    assert "sets.columns[1:]" in found["polars"]
    assert '[data[[paste0(name, "_set")]] + 1]' in found["r"], "R counts from one"
