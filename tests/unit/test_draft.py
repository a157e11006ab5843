"""Drafted policies: they parse, they work on their table, and they lean to protection."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pytest

import noren as nr
from noren.demo.hospital import hospital_table
from noren.io.source import open_source
from noren.policy.policy import Policy
from noren.policy.proposal import draft, round_bins
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.table.profile import ValueCounts

N = 200
ROWS = range(N)
SPREAD = np.random.default_rng(5).random(N)
ODD_NAMES = ["a b", "x\ny", "é\x7f", 'q"', "[t]", "漢 = #"]

TABLES = {
    "a hospital": hospital_table(400),
    "a small club": pa.table(
        {
            "name": list("abcdefg"),
            "job": list("xxyyzzz"),
            "zip": list("1122334"),
            "disease": list("ffgghhi"),
        }
    ),
    "two values each": pa.table({"sex": ["m", "f"] * 20, "disease": ["a", "b"] * 20}),
    "numbers of all sizes": pa.table(
        {
            "tiny": SPREAD * 1e-12,
            "large": SPREAD * 1e18,
            "negative": -SPREAD,
            "far from zero": 1e9 + SPREAD,
            "amount": [f"{number:.2f}" for number in SPREAD * 1000],
            "whole": [int(number) for number in SPREAD * 2**61],
        }
    ),
    "odd names": pa.table({name: [str(i % (3 + k)) for i in ROWS] for k, name in enumerate(ODD_NAMES)}),
    "holes": pa.table(
        {
            "test": [None if i % 9 else "positive" for i in ROWS],
            "age": [None if i % 4 else i for i in ROWS],
            "nothing": pa.array([None] * N, pa.string()),
            "always": ["same"] * N,
        }
    ),
    "other types": pa.table(
        {
            "flag": [bool(i % 2) for i in ROWS],
            "day": pa.array([i % 12 for i in ROWS], pa.int32()).cast(pa.date32()),
            "group": pa.array(["ab"[i % 2] + "xyz"[i % 3] for i in ROWS]).dictionary_encode(),
        }
    ),
}


def drafted(table: pa.Table) -> dict[str, Column]:
    return dict(Policy.parse(draft(open_source(table))).attributes)


@pytest.mark.parametrize("name", TABLES)
def test_a_draft_is_a_policy_that_works_on_its_table(name: str) -> None:
    table = TABLES[name]
    policy = Policy.parse(draft(open_source(table)))
    assert list(policy.attributes) == table.column_names
    release = nr.anonymize(table, policy)
    assert release.records == table.num_rows
    assert set(release.designs) == set(policy.protected)
    assert all(verdict.holds for verdict in release.verdicts)


def test_a_csv_file_is_drafted_and_works(tmp_path: Path) -> None:
    pv.write_csv(TABLES["a hospital"], tmp_path / "patients.csv")
    text = draft(open_source(tmp_path / "patients.csv"))
    assert text.startswith("# Drafted from patients.csv: 400 records, 7 columns.\n")
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    assert nr.anonymize(tmp_path / "patients.csv", tmp_path / "policy.toml").records == 400


def test_guesses_for_a_hospital() -> None:
    roles = {name: attribute.role for name, attribute in drafted(TABLES["a hospital"]).items()}
    assert roles == {
        "patient_id": Role.IDENTIFIER,
        "name": Role.IDENTIFIER,
        "age": Role.SENSITIVE_QUASI_IDENTIFIER,
        "zip": Role.QUASI_IDENTIFIER,
        "job": Role.SENSITIVE_QUASI_IDENTIFIER,
        "admission_year": Role.SENSITIVE_QUASI_IDENTIFIER,
        "disease": Role.SENSITIVE,
    }


def test_a_column_of_one_value_and_holes_is_not_harmless() -> None:
    attributes = drafted(TABLES["holes"])
    assert attributes["test"].role is Role.SENSITIVE_QUASI_IDENTIFIER
    assert attributes["nothing"].role is Role.PLAIN
    assert attributes["always"].role is Role.PLAIN


def test_columns_nearly_unique_are_identifiers_unless_they_are_numbers() -> None:
    codes = [f"c{i}" for i in ROWS]
    attributes = drafted(pa.table({"code": codes, "weight": SPREAD, "kind": ["a", "b", "c", "d"] * 50}))
    assert attributes["code"].role is Role.IDENTIFIER
    assert attributes["weight"].bins is not None
    assert attributes["kind"].role is Role.SENSITIVE_QUASI_IDENTIFIER


def test_amounts_with_trailing_zeros_are_numbers_and_codes_with_leading_zeros_are_not() -> None:
    prices = [f"{i // 2}.{i % 2 * 5}0" for i in ROWS]
    attributes = drafted(pa.table({"price": prices, "area": [f"{i % 50:05}" for i in ROWS]}))
    assert attributes["price"].bins == (0, 20, 40, 60, 80, 100)
    assert attributes["area"].bins is None


def test_columns_with_very_many_values_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.table.profile.OPEN_LIMIT", 50)
    table = pa.table({"story": [f"story {i % 60}" for i in ROWS], "kind": ["a", "b", "c", "d"] * 50})
    text = draft(open_source(table))
    assert "# story: very many distinct values" in text
    assert Policy.parse(text).attributes["story"].role is Role.IDENTIFIER


def test_the_comments_say_what_was_found() -> None:
    text = draft(open_source(TABLES["holes"]))
    assert "# test: string, 1 distinct, 177 missing" in text
    assert "# age: integer, 50 distinct, 0 to 196, 150 missing" in text
    assert "# always: string, 1 distinct; a single value" in text


def test_protection_is_asked_for_as_far_as_the_smallest_domain_allows() -> None:
    text = draft(open_source(pa.table({"a": list("xyz") * 10, "b": list("pqrst") * 6, "c": list("uv") * 15})))
    policy = Policy.parse(text)
    assert {model.model: (model.on, model.required) for model in policy.require} == {
        "frequency-l-diversity": (("a", "b"), 2),
        "t-closeness": (("c",), 0.3),
    }


@pytest.mark.parametrize(
    ("numbers", "edges"),
    [
        ([0, 99], [0, 20, 40, 60, 80, 100]),
        ([3, 80], [0, 10, 20, 30, 40, 50, 60, 70, 80]),
        ([0.1, 0.7], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
        ([-5, 5], [-6, -4, -2, 0, 2, 4, 6]),
        ([1e-12, 8e-12], [1e-12, 2e-12, 3e-12, 4e-12, 5e-12, 6e-12, 7e-12, 8e-12]),
    ],
)
def test_bins_are_round_and_cover_everything(numbers: list[float], edges: list[float]) -> None:
    assert round_bins(ValueCounts("x", {repr(number): 1 for number in numbers})) == edges
