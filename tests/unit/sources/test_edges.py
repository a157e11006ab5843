"""What people bring and ask: files without a header, a wrong separator, workbooks, ranges, names of models."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.cli.render import parse_where
from noren.errors import DataError, QueryError
from noren.estimates.counts.query import allowed_values, grouping
from noren.estimates.statistics.records import numbers_of
from noren.policy.problems import closest
from noren.schema.column import Column
from noren.schema.domain import MISSING, Domain, DomainSource, bin_labels
from noren.schema.kinds import Kind
from noren.schema.roles import Role
from noren.sources.header import is_headless
from noren.sources.source import open_source

MISSING_TEXTS = ("", "NA", "?")


def rows(text: str) -> list[list[str]]:
    return [line.split(",") for line in text.split()]


@pytest.mark.parametrize(
    ("text", "headless"),
    [
        ("34,f,1200 35,m,1300 36,f,900 37,m,1100", True),
        ("age,sex,pay 35,m,1300 36,f,900 37,m,1100", False),
        ("1987-05-03,a,3 1988-01-02,b,4 1989-03-04,c,5 1990-01-01,d,6", True),
        ("country,1990,1991,1992 de,1,2,3 fr,4,5,6 us,7,8,9", False),
        ("name,2020 a,1 b,2 c,3", False),
        ("00123,x 00456,y 00789,x 01234,y", True),
        ("zip,x 00456,y 00789,x 01234,y", False),
        ("a,b c,d e,f g,h", False),
        ("NA,3,4 1,NA,5 2,4,6 3,5,7", True),
    ],
)
def test_a_first_line_like_those_below_is_no_header(text: str, headless: bool) -> None:
    assert is_headless(rows(text), MISSING_TEXTS) is headless


def test_a_file_without_a_header_is_refused_and_nothing_is_quoted(tmp_path: Path) -> None:
    lines = [f"{i + 7777},{i % 9},{'fm'[i % 2]}" for i in range(50)]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match="probably a record, not a header") as caught:
        open_source(tmp_path / "people.csv")
    assert "names of the columns" in (caught.value.hint or "")
    assert "7777" not in str(caught.value)


def test_a_wrong_separator_is_named(tmp_path: Path) -> None:
    lines = ["age;sex;pay", *(f"{i};f;{i * 100}" for i in range(30))]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match="one column, and every line holds ';' 2 times") as caught:
        open_source(tmp_path / "people.csv", separator=",")
    assert "Set the separator to ';'" in (caught.value.hint or "")
    assert open_source(tmp_path / "people.csv").columns == ("age", "sex", "pay")


def test_one_column_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("job\nbaker\nclerk, senior\nnurse\n", encoding="utf-8")
    assert open_source(tmp_path / "one.csv", separator=";").columns == ("job",)


def test_a_workbook_without_its_reader_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ModuleNotFoundError("fastexcel")

    (tmp_path / "people.xlsx").write_bytes(b"PK\x03\x04")
    monkeypatch.setattr(pl, "read_excel", refuse)
    with pytest.raises(DataError) as caught:
        open_source(tmp_path / "people.xlsx")
    assert "pip install 'noren[excel]'" in (caught.value.hint or "")


def test_a_workbook_is_opened_through_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"age": [1, 2, -9], "job": ["a", "b", None]})
    (tmp_path / "people.xlsx").write_bytes(b"PK\x03\x04")
    monkeypatch.setattr(pl, "read_excel", lambda *_, **__: frame)
    source = open_source(tmp_path / "people.xlsx", missing_values=["-9"])
    assert source.columns == ("age", "job")
    assert source.name.endswith("people.xlsx")
    assert next(iter(source.batches(["age"]))).column("age").null_count == 1


def test_a_family_of_models_is_suggested() -> None:
    hint = closest("l-diversity", nr.models.MODELS)
    for name in ("distinct-l-diversity", "entropy-l-diversity", "frequency-l-diversity", "recursive-cl-diversity"):
        assert repr(name) in hint
    assert closest("k-anonimity", nr.models.MODELS) == "Did you mean 'k-anonymity'?"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"name": "Ann Smith", "ill": "Flu"}\n{"name": "Bob Jones", "ill": "Gout"}\n', "JSON"),
        ('[{"name": "Ann Smith",\n"ill": "Flu"}]', "JSON"),
        ('[\n  ["Ann Smith", "Flu"]\n]', "JSON"),
        ('\ufeff <?xml version="1.0"?><row name="Ann Smith"/>', "XML"),
        ("<table><tr><td>Ann Smith</td></tr></table>", "XML"),
        ("<!DOCTYPE html>\n<td>Ann, Smith</td>", "XML"),
        ("<people>\n<one>Ann, Smith</one>\n</people>\n", "XML"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "xml"])
def test_text_that_is_no_table_is_refused_without_its_cells(text: str, what: str, suffix: str, tmp_path: Path) -> None:
    """Its first line would be taken for names, and names are shown in messages and drafted policies."""
    path = tmp_path / f"people.{suffix}"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"this is {what}") as refused:
        open_source(path)
    assert "Ann" not in str(refused.value)


@pytest.mark.parametrize("header", ["<18,ill", "[1],ill", "{a},ill", "(x),ill", "<b>x</b>,ill"])
def test_names_that_begin_with_brackets_are_names(header: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(f'{header}\na,"b, b"\nc,d\ne,f\n', encoding="utf-8")
    assert open_source(tmp_path / "people.csv").columns[1] == "ill"


# ---------------------------------------------------------------- ranges


def column(
    values: tuple[str, ...], kind: Kind, source: DomainSource = "data", edges: Any = None, measure: str | None = None
) -> Column:
    return Column(role=Role.QUASI_IDENTIFIER).over("x", Domain(values, kind, source, edges=edges, measure=measure))


@pytest.mark.parametrize(
    ("kind", "values", "wanted", "found"),
    [
        ("integer", ("18", "29", "30", "41", MISSING), {">=": 30}, "30 41"),
        ("integer", ("18", "29", "30", "41", MISSING), {">": "18", "<": "41"}, "29 30"),
        ("number", ("1.5", "2", "2.5"), {"<=": 2}, "1.5 2"),
        ("date", ("1986-12-31", "1987-01-01", "1987-12-31", "1988-01-01"), {">=": "1987", "<=": "1987"},
         "1987-01-01 1987-12-31"),
        ("date", ("1987-04-30", "1987-05-01", "1987-06-01"), {"<": "1987-05"}, "1987-04-30"),
        ("date", ("1987-05-01", "1987-05-31", "1987-06-01"), {">": "1987-05"}, "1987-06-01"),
        ("date", ("1987-12-30", "1988-01-01"), {"<=": "1987-12"}, "1987-12-30"),
    ],
)  # fmt: skip
def test_ranges(kind: Kind, values: tuple[str, ...], wanted: dict[str, Any], found: str) -> None:
    one = column(values, kind)
    mask = allowed_values(one, wanted, one.domain)
    assert [value for value, inside in zip(values, mask, strict=True) if inside] == found.split()


def test_ranges_of_moments_and_of_declared_orders() -> None:
    moments = column(("1987-05-01 10:00:00", "1987-05-01 12:00:00", "1987-05-02 00:00:00"), "datetime")
    assert allowed_values(moments, {"<=": "1987-05-01"}, moments.domain).tolist() == [True, True, False]
    assert allowed_values(moments, {">": "1987-05-01 10:00:00"}, moments.domain).tolist() == [False, True, True]
    grades = column(("low", "middle", "high"), "string", "policy")
    assert allowed_values(grades, {">=": "middle"}, grades.domain).tolist() == [False, True, True]


def test_a_range_of_bins_ends_where_bins_end() -> None:
    edges = (-np.inf, 20.0, 40.0, np.inf)
    bins = column((*bin_labels(edges), MISSING), "string", "bins", edges)
    assert allowed_values(bins, {">=": 20}, bins.domain).tolist() == [False, True, True, False]
    assert allowed_values(bins, {"<": 40}, bins.domain).tolist() == [True, True, False, False]
    with pytest.raises(QueryError, match="is not an edge of a bin"):
        allowed_values(bins, {">=": 30}, bins.domain)


@pytest.mark.parametrize("wanted", [{">": 20}, {"<=": 20}, {">": 18}, {"<": 40}, {">=": 40}, {"<=": 18}])
def test_the_edge_itself_lies_in_one_bin(wanted: dict[str, Any]) -> None:
    """[18, 20) and [20, 40]: nobody can tell who is 20 from who is older, or 40 from younger."""
    edges = (18.0, 20.0, 40.0)
    bins = column(bin_labels(edges), "string", "bins", edges)
    with pytest.raises(QueryError, match="is not an edge of a bin"):
        allowed_values(bins, wanted, bins.domain)
    assert allowed_values(bins, {"<=": 40, ">=": 18}, bins.domain).all()
    assert allowed_values(bins, {"<": 20}, bins.domain).tolist() == [True, False]


def test_ranges_of_general_dates_and_whole_numbers_end_a_step_before_the_next() -> None:
    edges = tuple(float(date(year, 1, 1).toordinal()) for year in (1950, 1960, 1970))
    born = column(bin_labels(edges, "date"), "string", "data", edges, "date")
    assert allowed_values(born, {">=": "1960"}, born.domain).tolist() == [False, True]
    assert allowed_values(born, {"<": date(1960, 1, 1)}, born.domain).tolist() == [True, False]
    assert allowed_values(born, {"<=": "1959"}, born.domain).tolist() == [True, False]
    assert allowed_values(born, {">": "1959-12-31"}, born.domain).tolist() == [False, True]
    for wanted in ({">": "1960"}, {"<": "1955-05"}, {"<=": "1960-01-01"}):
        with pytest.raises(QueryError, match="is not an edge of a bin") as refused:
            allowed_values(born, wanted, born.domain)
        assert "1960-01-01" in str(refused.value.hint)
    with pytest.raises(QueryError, match="is not a date"):
        allowed_values(born, {"<": "early"}, born.domain)
    ages = column(bin_labels((20, 30, 40), "integer"), "string", "data", (20.0, 30.0, 40.0), "integer")
    assert allowed_values(ages, {"<=": 29}, ages.domain).tolist() == [True, False]
    assert allowed_values(ages, {">": 29}, ages.domain).tolist() == [False, True]


@pytest.mark.parametrize("measure", ["date", "datetime", "code-5"])
def test_days_and_codes_are_no_numbers_to_average(measure: str) -> None:
    """As exact dates and codes are none; the middle of a bin of days counts from the year 1."""
    edges = (1000.0, 1050.0, 1100.0)
    one = column(bin_labels(edges, measure), "string", "data", edges, measure)
    assert numbers_of("x", one.domain) == (None, None, "")
    with pytest.raises(QueryError, match="does not hold numbers"):
        grouping("x/50", one, "/", "50", one.domain)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({">=": "x"}, "not a number"),
        ({">": 99}, "no value lies in the range"),
        ({"all": ["1"]}, "one value per record"),
    ],
)
def test_ranges_that_mean_nothing(wanted: dict[str, Any], message: str) -> None:
    one = column(("1", "2", "3"), "integer")
    with pytest.raises(QueryError, match=message):
        allowed_values(one, wanted, one.domain)
    unordered = column(("a", "b"), "string")
    with pytest.raises(QueryError, match="no order"):
        allowed_values(unordered, {">": "a"}, unordered.domain)


def test_ranges_are_parsed() -> None:
    assert parse_where(["age>=30", "age < 40", "job=a,b"], ["age", "job"]) == {
        "age": {">=": "30", "<": "40"},
        "job": ["a", "b"],
    }
    assert parse_where(["text=a>b"], ["text"]) == {"text": ["a>b"]}
    assert parse_where(["x>=1"], ["x>"]) == {"x>": ["1"]}
    with pytest.raises(QueryError, match="two conditions"):
        parse_where(["age>=30", "age>=40"])
    with pytest.raises(QueryError, match="values and a range"):
        parse_where(["age>=30", "age=40"])


def test_a_release_answers_ranges(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    data = pl.DataFrame({"age": rng.integers(20, 60, 500), "ill": rng.choice(list("abc"), 500)})
    policy = nr.Policy(
        attributes={"age": "quasi-identifier", "ill": "plain"},
        require=[nr.models.KAnonymity(k=5)],
        method=nr.methods.Mondrian(),
    )
    release = nr.anonymize(data, policy)
    truth = data.filter((pl.col("age") >= 30) & (pl.col("age") < 50)).height
    assert abs(release.count({"age": {">=": 30, "<": 50}}).count - truth) < 0.1 * truth


# ---------------------------------------------------------------- the release directory


def test_a_release_has_a_page_for_people_that_is_checked(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    data = pl.DataFrame({"age": rng.integers(20, 25, 400), "ill | `x`": rng.choice(list("abcd"), 400)})
    policy = nr.Policy(
        title="Ward 7\n# not a heading",
        attributes={"age": "quasi-identifier", "ill | `x`": "sensitive"},
        require=[{"model": "frequency-l-diversity", "on": "ill | `x`", "l": 2}],
        method={"name": "anatomy"},
        dependence={"most": 1},
    )
    nr.anonymize(data, policy, to=tmp_path / "r", file_format="csv")
    page = (tmp_path / "r" / "README.md").read_text(encoding="utf-8")
    assert "\n# not a heading" not in page
    for part in ("400 records", "nr.open_release", "read.csv", "SELECT * FROM", "noren verify ."):
        assert part in page
    header = (tmp_path / "r" / "data.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == '"age","ill | `x` (group)"'
    assert nr.open_release(tmp_path / "r").columns == ("age", "ill | `x`")
    (tmp_path / "r" / "README.md").write_text(page + "more", encoding="utf-8")
    with pytest.raises(nr.errors.ReleaseError, match=r"README\.md: changed or damaged"):
        nr.open_release(tmp_path / "r")
