"""Drafted policies read like advice: they run or stop with what must be decided, and they lean to protection."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pytest

import noren as nr
from noren.cli.hospital import hospital_table
from noren.engines.profile import ValueCounts
from noren.policy.guessing import Guess, guess, markers_of, says, seen
from noren.policy.policy import Policy
from noren.policy.proposal import draft
from noren.schema.column import Column, HierarchySpec
from noren.schema.roles import Role
from noren.sources.source import open_source
from tests.unit.drafted_tables import TABLES as BROUGHT
from tests.unit.drafted_tables import accidents, census, survey, visits

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
    "two values each": pa.table({"sex": ["m", "f"] * 20, "disease": ["a", "b", "b", "a"] * 10}),
    "numbers of all sizes": pa.table(
        {
            "tiny": SPREAD * 1e-12,
            "large": (1 - SPREAD) ** 2 * 1e18,
            "negative": -np.random.default_rng(6).random(N),
            "far from zero": 1e9 + np.random.default_rng(7).random(N),
            "amount": [f"{number:.2f}" for number in np.random.default_rng(8).random(N) * 1000],
        }
    ),
    "odd names": pa.table(
        {name: np.random.default_rng(k).integers(0, 3 + k, 5 * N).astype(str) for k, name in enumerate(ODD_NAMES)}
    ),
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
            "group": pa.array(["ab"[i * 7 % 11 % 2] + "xyz"[i * 5 % 7 % 3] for i in ROWS]).dictionary_encode(),
        }
    ),
}


def decided(text: str) -> str:
    """The draft with what its holder must decide: rows are people, and columns may tell each other."""
    people = "" if "[people]" in text else '\n[people]\nrows = "independent"\n'
    dependence = "" if "[dependence]" in text else "\n[dependence]\nmost = 1.0\n"
    return text + people + dependence


def drafted(table: pa.Table | pl.DataFrame) -> dict[str, Column]:
    return dict(Policy.parse(draft(open_source(table))).attributes)


def guessed(name: str, cells: list[str], *others: str) -> Guess:
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell] = counts.get(cell, 0) + 1
    return guess(seen(ValueCounts(name, counts)), len(cells), [name, *others])


@pytest.mark.parametrize("name", TABLES)
def test_a_draft_is_a_policy_that_works_on_its_table(name: str) -> None:
    table = TABLES[name]
    policy = Policy.parse(decided(draft(open_source(table))))
    assert list(policy.attributes) == table.column_names
    release = nr.anonymize(table, policy)
    assert set(release.designs) == set(policy.drawn)
    assert all(verdict.holds for verdict in release.verdicts)


@pytest.mark.parametrize("name", BROUGHT)
def test_the_unedited_draft_runs_and_tells_nobody_s_secret(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.csv"
    BROUGHT[name]().write_csv(file, separator=";")
    policy = Policy.parse(draft(open_source(file)))
    release = nr.anonymize(file, policy)
    assert all(verdict.holds for verdict in release.verdicts)
    for attack in ("homogeneity", "bayes"):
        for result in nr.attack(release, attack, original=file, policy=policy):
            for published in result.shown:
                if published.name != "raw":
                    assert published.summary["certain"] <= 0.01, (attack, result.target, published.name)


def test_a_csv_file_is_drafted_and_works(tmp_path: Path) -> None:
    pv.write_csv(TABLES["a hospital"], tmp_path / "patients.csv")
    text = draft(open_source(tmp_path / "patients.csv"))
    assert text.startswith("# Drafted from patients.csv: 400 records, 7 columns.\n")
    (tmp_path / "policy.toml").write_text(decided(text), encoding="utf-8")
    assert nr.anonymize(tmp_path / "patients.csv", tmp_path / "policy.toml").records == 400


def test_guesses_for_a_hospital() -> None:
    roles = {name: attribute.role for name, attribute in drafted(TABLES["a hospital"]).items()}
    assert roles == {
        "patient_id": Role.IDENTIFIER,
        "name": Role.IDENTIFIER,
        "age": Role.QUASI_IDENTIFIER,
        "zip": Role.QUASI_IDENTIFIER,
        "job": Role.QUASI_IDENTIFIER,
        "admission_year": Role.SENSITIVE,
        "disease": Role.SENSITIVE,
    }


def test_what_others_may_know_is_never_published_as_it_is() -> None:
    policy = Policy.parse(draft(open_source(visits())))
    assert [name for name, a in policy.attributes.items() if a.role is Role.PLAIN] == []
    for name, spec in (
        ("birth_date", HierarchySpec(calendar=("month", "year", "decade"))),
        ("postcode", HierarchySpec(prefix=(3, 2, 1))),
    ):
        assert policy.attributes[name].role is Role.QUASI_IDENTIFIER
        assert policy.attributes[name].hierarchy == spec
    assert policy.attributes["sex"].role is Role.QUASI_IDENTIFIER
    assert [model.model for model in policy.require] == ["k-anonymity", "frequency-l-diversity"]
    assert [method.name for method in policy.methods] == ["mondrian", "decoys"]


def test_the_key_of_people_is_found() -> None:
    text = draft(open_source(visits()))
    assert Policy.parse(text).people.key == ("patient_id",)
    assert "requirements count people, not rows" in text
    assert "# most_rows = ... says how many rows a person has at most" in text


def test_a_unique_row_number_is_no_key() -> None:
    assert Policy.parse(draft(open_source(census()))).people.key == ()


def test_a_household_is_no_person() -> None:
    table = pa.table(
        {"household_id": [i // 3 for i in ROWS], "age": [i * 7 % 61 for i in ROWS], "x": list("abcd") * 50}
    )
    policy = Policy.parse(draft(open_source(table)))
    assert (policy.people.key, policy.people.rows) == ((), "independent")


def test_names_that_repeat_stop_with_what_must_be_decided() -> None:
    table = pa.table({"surname": [f"s{i // 2}" for i in ROWS], "disease": list("abcd") * 50})
    with pytest.raises(nr.errors.PolicyError, match=r"people\.key"):
        nr.anonymize(table, Policy.parse(draft(open_source(table))))


def test_secrets_that_say_the_same_are_hidden_together() -> None:
    text = draft(open_source(census()))
    (group,) = Policy.parse(text).together
    assert set(group.columns) == {"dx02", "dx10", "group10"}
    assert "hidden together with dx02, dx10" in text


@pytest.mark.parametrize("codes", [40, 1500])
def test_of_columns_that_cannot_be_put_together_one_is_kept(codes: int) -> None:
    rng = np.random.default_rng(4)
    town = rng.integers(0, codes, 12_000)
    finds = "city" if codes == 40 else "illness"
    table = pa.table({finds: [f"c{x}" for x in town], "disease": [f"d{x * 7 % codes}" for x in town]})
    text = draft(open_source(table))
    policy = Policy.parse(text)
    assert not policy.together
    assert sum(not column.role.is_dropped for column in policy.attributes.values()) == 1
    assert text.count("is kept") == 1


def test_how_a_survey_is_written_is_sniffed() -> None:
    attributes = drafted(survey())
    assert attributes["age"].missing_values == ("NA",)
    assert (attributes["income"].decimal, attributes["income"].missing_values) == (",", ("?",))
    assert attributes["income"].bins == "quantiles:8"
    assert attributes["trust"].missing_values == ("-9",)
    assert attributes["comment"].role is Role.IDENTIFIER
    assert attributes["wt"].role is Role.PLAIN
    assert drafted(accidents())["date"].format == "%d/%m/%Y"


def test_the_draft_says_what_it_protects_and_who_is_alone() -> None:
    text = draft(open_source(visits()))
    assert "# What this draft protects:" in text
    assert "# What it does not protect:" in text
    share = re.search(r"# - (\d+)% of people are alone with their birth_date, sex and postcode\.", text)
    assert share is not None
    assert int(share[1]) > 90


@pytest.mark.parametrize(
    ("texts", "markers"),
    [
        (["?", "a", "b"], {"?"}),
        (["NA", "1", "2"], {"NA"}),
        (["NA", "DE", "FR", "US"], set()),
        (["unknown", "12", "13"], {"unknown"}),
        (["unknown", "red", "blue"], set()),
        (["-9", "1", "2", "3"], {"-9"}),
        (["-9", "-4", "2", "3"], set()),
        (["-9", "-8", "0", "1", "2"], {"-9", "-8"}),
        (["?", "NA"], set()),
    ],
)
def test_markers_of_missing_cells(texts: list[str], markers: set[str]) -> None:
    assert set(markers_of(dict.fromkeys(texts, 10))) == markers


@pytest.mark.parametrize(
    ("name", "stems", "found"),
    [
        ("patientId", "id", True),
        ("AGE_YEARS", "age$", True),
        ("birthdate", "birth", True),
        ("average", "age$", False),
        ("estate", "state$", False),
        ("trace", "race", False),
    ],
)
def test_names_are_read_word_by_word(name: str, stems: str, found: bool) -> None:
    assert says(name, stems) is found


def test_a_weight_of_bodies_is_no_survey_weight() -> None:
    cells = [f"{50 + i % 45}.{i % 10}" for i in ROWS]
    assert guessed("weight", cells).role is Role.PLAIN
    assert guessed("weight", cells, "height").role is Role.SENSITIVE


def test_a_column_of_one_value_and_holes_is_not_harmless() -> None:
    attributes = drafted(TABLES["holes"])
    assert attributes["test"].role is Role.SENSITIVE
    assert attributes["nothing"].role is Role.PLAIN
    assert attributes["always"].role is Role.PLAIN


def test_columns_nearly_unique_are_identifiers_unless_they_are_numbers() -> None:
    codes = [f"c{i}" for i in ROWS]
    attributes = drafted(pa.table({"code": codes, "level": SPREAD, "kind": ["a", "b", "c", "d"] * 50}))
    assert attributes["code"].role is Role.IDENTIFIER
    assert attributes["level"].bins == "quantiles:8"
    assert attributes["kind"].role is Role.SENSITIVE


def test_amounts_with_trailing_zeros_are_numbers_and_codes_with_leading_zeros_are_not() -> None:
    prices = [f"{i // 2}.{i % 2 * 5}0" for i in ROWS]
    attributes = drafted(pa.table({"price": prices, "area": [f"{i % 50:05}" for i in ROWS]}))
    assert attributes["price"].bins == "quantiles:8"
    assert attributes["area"].bins is None


def test_columns_with_very_many_values_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.engines.profile.OPEN_LIMIT", 50)
    table = pa.table({"story": [f"story {i % 60}" for i in ROWS], "kind": ["a", "b", "c", "d"] * 50})
    text = draft(open_source(table))
    assert "# story: very many distinct values" in text
    assert Policy.parse(text).attributes["story"].role is Role.IDENTIFIER


def test_the_comments_say_what_was_found() -> None:
    text = draft(open_source(TABLES["holes"]))
    assert "# test: text, 1 distinct, 177 missing" in text
    assert "# age: integer (whole numbers), 50 distinct, 150 missing" in text
    assert "# always: text, 1 distinct; a single value" in text


def test_protection_is_asked_for_as_far_as_each_domain_allows() -> None:
    rng = np.random.default_rng(9)
    table = pa.table(
        {"a": rng.choice(list("xyz"), 90), "b": rng.choice(list("pqrst"), 90), "c": rng.choice(["u", "v"], 90)}
    )
    policy = Policy.parse(draft(open_source(table)))
    assert [(model.model, model.on, model.required) for model in policy.require] == [
        ("frequency-l-diversity", ("b",), 3),
        ("frequency-l-diversity", ("a",), 2),
        ("t-closeness", ("c",), 0.3),
    ]


def test_rare_secrets_stop_with_what_must_be_decided() -> None:
    table = pa.table({"diagnosis": [f"J{i // 3:02}" for i in ROWS], "sex": ["f", "m"] * 100})
    text = draft(open_source(table))
    assert "until then the draft stops here" in text
    with pytest.raises(nr.errors.PolicyError, match="min_count"):
        nr.anonymize(table, Policy.parse(text))
