"""What a page asks is what the library is asked, and what its Python text says; charts turn dark and labels do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.estimates.counts.plots import INK, PALETTE, chart
from noren_studio import texts
from noren_studio.pages.choose import map_options
from noren_studio.pages.recipient_ask import first_rows
from noren_studio.questions import call_of, conditions, public_place, script
from noren_studio.theme import DARK
from noren_studio.work.answering import in_the_dark

ASKED: list[tuple[dict[str, Any], str]] = [
    ({"rows": ["job"]}, "release.estimate(['job'])"),
    (
        {"kind": "count", "rows": ["job"], "columns": ["disease@2"], "estimator": "linear", "level": 0.9},
        "release.estimate(['job', 'disease@2'], estimator='linear', level=0.9)",
    ),
    ({"filters": [{"column": "job", "values": ["Nurse"]}]}, "release.count({'job': ['Nurse']})"),
    (
        {"kind": "number", "measure": "mean", "of": "disease", "share": "Cancers", "by": ["age"], "population": True},
        "release.mean('disease=Cancers', by=['age'], population=True)",
    ),
    ({"kind": "number", "measure": "quantile", "of": "age", "at": 0.9}, "release.quantile('age', 0.9)"),
    (
        {"kind": "number", "measure": "correlation", "of": "age", "second": "admission_year"},
        "release.correlation('age', 'admission_year')",
    ),
    (
        {"kind": "number", "measure": "difference", "of": "age", "by": ["job"], "against": ["Nurse"]},
        "release.difference('age', by=['job'], against=['Nurse'])",
    ),
    (
        {"kind": "model", "response": "disease", "response_share": "Cancers", "terms": ["age"], "family": "binomial"},
        "release.regress('`disease=Cancers` ~ age', family='binomial')",
    ),
    ({"kind": "model", "formula": " age ~ C(job) ", "terms": ["zip"]}, "release.regress('age ~ C(job)')"),
    ({"kind": "test", "one": "job", "two": "disease@2"}, "release.test('job', 'disease@2')"),
]


@pytest.mark.parametrize(("question", "text"), ASKED, ids=[text for _, text in ASKED])
def test_a_question_is_one_call(question: dict[str, Any], text: str) -> None:
    call = call_of(question)
    assert call.text() == text
    assert f"answer = {text}\n" in script(call, "/data/release")
    assert hasattr(nr.Release, call.verb)


@pytest.mark.parametrize(
    "question",
    [{}, {"kind": "number"}, {"kind": "number", "measure": "ratio", "of": "age"}, {"kind": "model"}, {"kind": "test"}],
    ids=str,
)
def test_what_is_not_chosen_yet_is_said(question: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as caught:
        call_of(question)
    assert caught.value.hint


def test_filters_become_conditions() -> None:
    filters = [
        {"column": "age", "how": "range", ">=": "30", "<": "40.5"},
        {"column": "born", "how": "range", ">=": "1987-05"},
        {"column": "signs", "how": "all", "values": ["cough", "fever"]},
        {"column": "job", "values": []},
        {"how": "in"},
    ]
    assert conditions(filters) == {
        "age": {">=": 30, "<": 40.5},
        "born": {">=": "1987-05"},
        "signs": {"all": ["cough", "fever"]},
    }


def test_a_label_in_the_python_text_is_a_literal() -> None:
    nasty = "'); import os; os.abort(); ('\u202e"
    text = call_of({"filters": [{"column": nasty, "values": [nasty]}]}).text()
    assert "\u202e" not in text
    assert eval(text.removeprefix("release.count")) == {nasty: [nasty]}


def test_an_address_is_shown_without_its_password() -> None:
    shown = public_place("postgresql://ann:s3cret@host:5433/base?schema=patients&password=s3cret&sslmode=require")
    assert shown == "postgresql://ann@host:5433/base?schema=patients&sslmode=require"
    assert public_place("/data/a:b@c") == "/data/a:b@c"


def test_the_dark_look_changes_colours_and_no_label() -> None:
    """A value may be called like a colour of the charts."""
    labels = ["white", INK, PALETTE[0]]
    frame = pl.DataFrame(
        {"white": labels, "count": [1.0, 2.0, 3.0], "std_error": [0.1] * 3, "low": [0.5] * 3, "high": [4.0, 4.0, 5.0]}
    )
    spec = chart(frame, ["white"], title="white").to_dict()
    dark = in_the_dark(spec)
    assert dark["datasets"] == spec["datasets"]
    assert dark["title"]["text"] == ["white"]
    assert dark["config"]["background"] == DARK["surface"]
    assert dark["config"]["axis"]["labelColor"] == DARK["ink"]
    bar = dark["layer"][0]
    assert bar["encoding"]["y"]["sort"] == labels
    assert bar["encoding"]["y"]["title"] == "white"
    assert bar["mark"]["color"] == PALETTE[4]


def test_the_map_and_the_table_of_candidates_say_the_risk_alike() -> None:
    one = {"called": "mondrian", "risk": 0.125, "belief": 0.125, "error": 0.2, "ncp": 0.3, "smallest": 5,
           "suppressed": 0, "seconds": 1.0, "front": True, "chosen": True, "number": 3}  # fmt: skip
    line, points, raw = map_options([one], [], dark=False, raw=0.5)["series"]
    assert (line["data"], points["data"][0]["value"]) == ([[12.5, 20.0]], [12.5, 20.0])
    assert points["data"][0]["label"]["formatter"] == "3"
    assert raw["data"][0]["value"] == [50.0, 0]
    assert texts.candidate_figures(one)[:2] == ("12.5%", "20.0%")


def column(name: str, distinct: int | None, exact: bool = False, levels: Sequence[int] = ()) -> dict[str, Any]:
    told = [{"level": at, "count": count} for at, count in enumerate(levels, 1)]
    return {"name": name, "distinct": distinct, "exact": exact, "countable": True, "levels": told}


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ([column("ward", 4, exact=True), column("age", 101), column("job", 12)], "job"),
        ([column("ward", 4, exact=True), column("age", 101)], "age"),
        ([column("zip", 900, levels=(90, 9, 2)), column("job", 12)], "zip@2"),
        ([column("note", None), column("disease", 24)], "note"),
        ([column("ward", 4, exact=True)], "ward"),
        ([], None),
    ],
)
def test_the_first_question_has_an_answer_that_is_taken_in_at_once(
    columns: list[dict[str, Any]], wanted: str | None
) -> None:
    assert first_rows({"columns": columns}) == wanted
