"""Drafted policies read like advice, decide every open question, and lean to protection."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pytest

import noren as nr
from noren.cli.demo import hospital_table
from noren.engines.engine import ValueCounts
from noren.policy.guessing import Guess, guess, markers_of, says, seen
from noren.policy.policy import Policy
from noren.policy.proposal import draft
from noren.schema.column import Column, HierarchySpec
from noren.schema.roles import Role
from noren.sources.source import open_source
from tests.unit.drafted_tables import FIRST, LAST, accidents, census, survey, visits
from tests.unit.drafted_tables import TABLES as BROUGHT

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


def guessed(name: str, cells: list[str]) -> Guess:
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell] = counts.get(cell, 0) + 1
    return guess(seen(ValueCounts(name, counts)), len(cells))


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
    assert text.splitlines()[1] == "# Drafted from patients.csv: 400 records, 7 columns."
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
    assert "# Add most_rows = ..., the largest number of rows of one person" in text


def test_a_unique_row_number_is_no_key() -> None:
    assert Policy.parse(draft(open_source(census()))).people.key == ()


def test_a_household_is_no_person() -> None:
    table = pa.table(
        {"household_id": [i // 3 for i in ROWS], "age": [i * 7 % 61 for i in ROWS], "x": list("abcd") * 50}
    )
    policy = Policy.parse(draft(open_source(table)))
    assert (policy.people.key, policy.people.rows) == ((), "independent")


def test_names_that_repeat_are_no_key_and_the_draft_says_so() -> None:
    table = pa.table({"surname": [f"s{i // 2}" for i in ROWS], "disease": list("abcd") * 50})
    text = draft(open_source(table))
    assert "# surname repeats and is not a key: every row is treated as a different person." in text
    assert nr.anonymize(table, Policy.parse(text)).records == N


@pytest.mark.parametrize(
    ("cells", "key"),
    [
        ([f"p{i // 3}" for i in ROWS], ("MANAGER_ID",)),
        ([None if i == 7 else f"p{i // 3}" for i in ROWS], ()),
        ([f"p{i % 9}" for i in ROWS], ()),
    ],
)
def test_a_key_of_people_has_many_values_and_none_missing(cells: list[str | None], key: tuple[str, ...]) -> None:
    table = pa.table({"MANAGER_ID": cells, "number": [str(i) for i in ROWS], "disease": list("abcd") * 50})
    policy = Policy.parse(draft(open_source(table.rename_columns(["patient id", "number", "disease"]))))
    assert policy.people.key == tuple("patient id" for _ in key)


def test_secrets_that_say_the_same_are_hidden_together() -> None:
    text = draft(open_source(census()))
    (group,) = Policy.parse(text).together
    assert set(group.columns) == {"dx02", "dx10", "group10"}
    assert "hidden together with dx02, dx10" in text


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
    share = re.search(r"# - (\d+)% of people are unique in their birth_date, sex and postcode\.", text)
    assert share is not None
    assert int(share[1]) > 90


def test_more_columns_that_disclose_each_other_than_can_be_hidden_together_are_not_drafted_together() -> None:
    same = np.repeat(np.arange(5), 40)
    table = pl.DataFrame({f"item{i:02d}": [f"{i}.{x}" for x in same] for i in range(20)})
    assert not Policy.parse(draft(open_source(table))).composites


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
        (["NS", "NC", "1", "2", "3"], {"NS", "NC"}),
        (["NS", "NB", "ON"], set()),
        (["1", "2", "7", "98", "99"], {"98", "99"}),
        (["-9.0", "1.0", "2.0"], {"-9.0"}),
        (["60", "77", "88", "99"], set()),
        (["?", "NA"], set()),
    ],
)
def test_markers_of_missing_cells(texts: list[str], markers: set[str]) -> None:
    assert set(markers_of(dict.fromkeys(texts, 10))) == markers


@pytest.mark.parametrize(
    ("name", "meaning", "found"),
    [
        ("patientId", "key", True),
        ("AGE_YEARS", "classic", True),
        ("birthdate", "classic", True),
        ("average", "classic", False),
        ("estate", "known", False),
        ("trace", "known", False),
        ("Geburtsjahr", "classic", True),
        ("Straße", "name", True),
        ("HALTER_ID", "person", True),
        ("prénom", "name", True),
        ("Código Postal", "classic", True),
        ("profissão", "known", True),
        ("età", "classic", True),
        ("leeftijd", "classic", True),
        ("患者番号", "person", True),
        ("お名前", "name", True),
        ("participant", "secret", False),
    ],
)
def test_names_are_read_word_by_word_in_several_languages(name: str, meaning: str, found: bool) -> None:
    assert says(name, (meaning,)) is found


def test_a_weight_of_bodies_is_no_survey_weight() -> None:
    assert guessed("weight", [f"{50 + i % 45}.{i % 10}" for i in ROWS]).role is Role.SENSITIVE
    assert guessed("weight", [f"{0.5 + i % 11 / 10}" for i in ROWS]).role is Role.PLAIN
    assert guessed("pspwght", [f"{50 + i % 45}.{i % 10}" for i in ROWS]).role is Role.PLAIN


def test_records_of_weight_0_stand_for_nobody() -> None:
    found = guessed("pspwght", ["0" if i % 20 == 0 else f"{0.5 + i % 11 / 10}" for i in ROWS])
    assert (found.options["missing_values"], found.options["missing"]) == (["0"], "drop")
    assert guessed("weight_gain", ["0"] * 150 + ["1"] * 50).role is Role.SENSITIVE


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        ([f"user{i}@example.org" for i in range(50)] * 4, Role.IDENTIFIER),
        ([f"0{i % 7 + 30} {i:07}" for i in ROWS], Role.IDENTIFIER),
        ([f"{i % 90} High Street {i}" for i in ROWS], Role.IDENTIFIER),
        ([f"{a} {b}{c}" for a in FIRST[:4] for b in LAST[:2] for c in "abcdefghijklmnopqrstuvwxy"], Role.IDENTIFIER),
        ([f"Town {'abcdefghijklmnopqrstuvwxyz'[i % 25]}" for i in ROWS], Role.SENSITIVE),
        (["yes", "no"] * 100, Role.SENSITIVE),
    ],
)
def test_what_reaches_people_is_known_by_its_values(cells: list[str], role: Role) -> None:
    assert guessed("column", cells).role is role


def test_a_name_of_which_there_are_few_is_a_category() -> None:
    assert guessed("telephone", ["yes", "none"] * 100).role is Role.SENSITIVE
    assert guessed("last", [f"Kron{'abcdefghij'[i % 10]}" for i in ROWS]).role is Role.IDENTIFIER
    assert guessed("GenderID", ["0", "1"] * 100).role is not Role.IDENTIFIER


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["07/10/83", "12/31/1999"[:6] + "99", "01/15/45"], "%m/%d/%y"),
        (["07/10/83 10:05", "31/12/99 23:59"], "%d/%m/%y %H:%M"),
        (["07/10/83 10:05", "12/31/99 23:59"], "%m/%d/%y %H:%M"),
        (["31.12.1999", "01.02.1955"], "%d.%m.%Y"),
        (["01/02/2019", "03/04/2019"], "%d/%m/%Y"),
        (["1987年5月3日", "1990年12月31日"], "%Y年%m月%d日"),
        (["03-May-87", "31-DEC-90"], "%d-%b-%y"),
    ],
)
def test_dates_in_national_forms(cells: list[str], form: str) -> None:
    assert guessed("seen", cells * 20).options["format"] == form


@pytest.mark.parametrize("name", ["postcode", "郵便番号", "PLZ"])
def test_postcodes_that_are_nearly_all_different_are_generalised(name: str) -> None:
    found = guessed(name, [f"{i * 37 + 10_000}-{i % 9}" for i in ROWS])
    assert found.role is Role.QUASI_IDENTIFIER
    assert "prefix" in found.options["hierarchy"]
    assert not found.names_people


@pytest.mark.parametrize("name", ["card_no", "contract number", "Kartennummer Nr"])
def test_long_numbers_of_one_length_are_identifiers(name: str) -> None:
    assert guessed(name, [f"29{i % 90:06}" for i in ROWS]).role is Role.IDENTIFIER
    assert guessed(name, ["1", "2", "30"] * 60).role is not Role.IDENTIFIER


def test_a_person_is_named_by_one_word_too_and_a_platelet_is_no_plate() -> None:
    named = guessed("subject", [f"S-{i % 90:04}" for i in ROWS])
    assert (named.role, named.names_people) == (Role.IDENTIFIER, True)
    assert guessed("subject", ["law", "arts", "music"] * 60).role is Role.SENSITIVE
    assert guessed("platelet", [str(i % 90 + 150) for i in ROWS]).role is Role.SENSITIVE


def test_dates_that_can_be_read_two_ways_are_read_as_the_others_are_written() -> None:
    days = [f"{i % 12 + 1:02}/{i % 11 + 1:02}/2019" for i in ROWS]
    table = pa.table({"start": days, "end": [f"{i % 12 + 1:02}/{i % 27 + 1:02}/2019" for i in ROWS]})
    text = draft(open_source(table))
    assert {name: column.format for name, column in Policy.parse(text).attributes.items()} == dict.fromkeys(
        ("start", "end"), "%m/%d/%Y"
    )
    assert 'read as month before day, which the data do not settle; if it is wrong, write format = "%d/%m/%Y"' in text


def test_months_are_generalised_to_years() -> None:
    found = guessed("issue_d", [f"20{10 + i % 9}-{i % 12 + 1:02}" for i in ROWS])
    assert (found.role, found.options["hierarchy"]) == (Role.QUASI_IDENTIFIER, {"prefix": (4, 3)})


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
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 50)
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


def test_a_secret_of_rare_values_is_dropped_with_the_way_to_keep_it() -> None:
    table = pa.table({"diagnosis": [f"J{i // 3:02}" for i in ROWS], "sex": ["f", "m"] * 100})
    text = draft(open_source(table))
    assert Policy.parse(text).attributes["diagnosis"].role is Role.DROP
    assert (
        "100% of the records have a value that fewer than 5 share; to publish it, shorten the codes in the table"
        in text
    )


def test_amounts_that_are_mostly_0_are_kept_in_two_values() -> None:
    found = guessed("capital", ["0"] * 900 + [str(1000 + i) for i in range(60)])
    assert (found.role, found.options["top"], found.size) == (Role.SENSITIVE, 1, 2)


def test_what_follows_from_what_others_know_is_generalised_with_it() -> None:
    rng = np.random.default_rng(3)
    town = rng.integers(0, 30, 900)
    columns = {"town": [f"t{one}" for one in town], "zone": [f"z{one // 8}" for one in town]}
    attributes = drafted(pa.table({**columns, "mood": rng.choice(list("abcde"), 900)}))
    assert [attributes[name].role for name in ("zone", "mood")] == [Role.QUASI_IDENTIFIER, Role.SENSITIVE]
