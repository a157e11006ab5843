"""Releases for other tools: what is written can be read there, and says what was published."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import date, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.errors import DataError, NorenError, QueryError
from noren.release.export import FORMS, SUFFIXES, _guard_frame, _short, export, wide, workbook
from tests.unit.release.test_answers_edges import with_terms


@pytest.fixture(scope="module")
def release() -> nr.Release:
    rng = np.random.default_rng(1)
    n = 200
    table = pl.DataFrame(
        {
            "Größe (cm)": rng.integers(150, 190, n), "job": rng.choice(["=cook", "clerk", "miner", "nurse"], n),
            "town": rng.choice(["Ulm", "Köln"], n),
        }
    )  # fmt: skip
    roles = {"Größe (cm)": "plain", "job": "sensitive", "town": "plain"}
    diverse = nr.models.FrequencyLDiversity(on="job", l=2)
    return nr.anonymize(table, nr.Policy(attributes=roles, require=[diverse], dependence={"most": 1.0}))


def test_wide_says_what_was_published(release):
    made = wide(release)
    published = release.frame()
    assert made.height == 200
    for value in ("=cook", "clerk", "miner", "nurse"):
        told = published["job"].list.contains(value).cast(pl.Int8)
        assert made[f"job={value}"].equals(told.alias(f"job={value}"))
    assert made["town"].equals(published["town"])


@pytest.mark.parametrize(
    "values",
    [
        [0.5, 1.25, 1e-7, 2.0],
        [datetime(2020, 2, 28, 23, hour) for hour in range(4)],
        [date(1850, 1, day) for day in range(1, 5)],
        [1, 2, 3, None],
        ["a", "b;c", "=d", None],
    ],
)
def test_wide_knows_every_kind_of_value(values):
    """A number, a moment and a missing value have other texts in a frame than in their domain."""
    table = pl.DataFrame({"x": values * 20, "x=2": [1] * 80})
    diverse = nr.models.FrequencyLDiversity(on="x", l=2)
    policy = nr.Policy(attributes={"x": "sensitive", "x=2": "plain"}, require=[diverse], dependence={"most": 1.0})
    released = nr.anonymize(table, policy)
    made = wide(released)
    names = made.columns[: made.columns.index("x=2")]
    assert len(names) == 4
    assert made.select(pl.sum_horizontal(names)).to_series().to_list() == [2] * 80
    typed = released.column("x").domain.typed_values()
    for name, value in zip(names, typed, strict=True):
        told = [value in cell for cell in released.frame()["x"].to_list()]
        assert made[name].cast(bool).to_list() == told


@pytest.mark.parametrize("form", ["stata", "spss"])
def test_columns_called_like_the_numbers_of_tables_are_kept(form, tmp_path):
    readers = pytest.importorskip("pyreadstat")
    names = ["imputation_", "_mi_id", "_mi_x", "ALL", "by", "in", "str5", "using", "_all"]
    table = pl.DataFrame({"_mi_m": list("abcd") * 20} | {name: [1, 2] * 40 for name in names})
    roles = {"_mi_m": "sensitive"} | dict.fromkeys(names, "plain")
    diverse = nr.models.FrequencyLDiversity(on="_mi_m", l=2)
    released = nr.anonymize(table, nr.Policy(attributes=roles, require=[diverse], dependence={"most": 1.0}))
    target = tmp_path / f"out{SUFFIXES[form]}"
    export(released, target, form, m=2, seed=1)
    read = readers.read_dta if form == "stata" else readers.read_sav
    frame, _ = read(str(target))
    number = "_mi_m" if form == "stata" else "imputation_"
    assert sorted(set(frame[number])) == [1, 2]
    assert frame.shape[1] == len(names) + (3 if form == "stata" else 2)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_written_and_can_be_read(form, release, tmp_path):
    release.save(tmp_path / "release")
    target = tmp_path / f"out{SUFFIXES[form]}"
    words = [
        "export",
        str(tmp_path / "release"),
        "--as",
        form,
        "--to",
        str(target),
        "--tables",
        "2",
        "--seed",
        "1",
        "--json",
    ]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["good_for"] == FORMS[form]
    if SUFFIXES[form] == ".csv":
        read = pl.read_csv(target)
        assert read.height == (200 if form == "wide-csv" else 400)
        texts = [text for column in read for text in ([column.name, *column.cast(pl.String).to_list()])]
        assert not [text for text in texts if text.startswith("=")]  # nothing that a spreadsheet runs
        return
    if form == "r":
        assert sorted(path.name for path in target.iterdir()) == ["estimate.R", "likelihood.csv", "records.csv"]
        return
    if form == "excel":
        read = pl.read_excel(target, engine="calamine")
        assert read.columns == ["Größe (cm)", "job", "town"]
        assert read["Größe (cm)"].to_list() == release.frame()["Größe (cm)"].to_list()
        assert {" or ".join(one) for one in release.frame()["job"]} == set(read["job"])
        about = pl.read_excel(target, engine="calamine", sheet_name="about")
        assert about["what it is"].to_list() == [one for one in release.describe().splitlines() if one]
        return
    pyreadstat = pytest.importorskip("pyreadstat", reason="Stata and SPSS need the extra export")
    read, meta = (pyreadstat.read_dta if form == "stata" else pyreadstat.read_sav)(str(target))
    assert len(read) == 400
    assert "Größe (cm)" in meta.column_labels
    assert set(read["job"]) == {"=cook", "clerk", "miner", "nurse"}
    assert sorted(set(read["_mi_m" if form == "stata" else "imputation_"])) == [1, 2]


def test_a_workbook_keeps_texts_as_they_are(tmp_path):
    """Neither a month nor a formula nor digits with zeros become something else; what XML cannot say is marked."""
    texts = ["2014-03", "=1+1", "007", " a ", "<&>\x01", None, "x\ny"]
    path = tmp_path / "book.xlsx"
    path.write_bytes(workbook({"t": [["text", "number"], *([text, 1.5] for text in texts)]}))
    read = pl.read_excel(path, engine="calamine")
    assert read["text"].to_list() == [*texts[:4], "<&>\ufffd", None, "x\ny"]
    assert read["number"].to_list() == [1.5] * 7
    with pytest.raises(QueryError, match="at most 32,767 letters"):
        workbook({"t": [["x" * 40_000]]})


def test_csv_begins_with_a_mark_when_asked(release, tmp_path):
    export(release, tmp_path / "marked.csv", "wide-csv", mark=True)
    export(release, tmp_path / "plain.csv", "wide-csv")
    assert (tmp_path / "marked.csv").read_bytes() == b"\xef\xbb\xbf" + (tmp_path / "plain.csv").read_bytes()
    with pytest.raises(QueryError, match="only CSV files begin"):
        export(release, tmp_path / "book.xlsx", "excel", mark=True)


def test_wrong_calls_are_said(release, tmp_path):
    with pytest.raises(QueryError, match="is not an export format"):
        export(release, tmp_path / "x.csv", "xml")
    with pytest.raises(DataError, match=r"\.dta"):
        export(release, tmp_path / "x.csv", "stata")
    (tmp_path / "there.csv").write_text("")
    with pytest.raises(NorenError, match="exists already"):
        export(release, tmp_path / "there.csv", "wide-csv")
    release.save(tmp_path / "release")
    with pytest.raises(NorenError, match="inside the release"):
        export(release, tmp_path / "release" / "x.csv", "wide-csv")


def test_names_for_other_programs():
    names = _short(["Größe (cm)", "größe_(cm)", "1st", "a" * 50, "a" * 51, "_mi_m"])
    assert len({name.lower() for name in names}) == 6
    assert all(len(name) <= 32 and name.isascii() for name in names)
    assert names[-1] == "v_mi_m"  # the numbers of the tables keep that name: a column of the release gives way
    assert _short(["by", "STR5", "imputation_"], ["imputation_"]) == ["vby", "vSTR5", "imputation__2"]


def test_names_begin_with_a_letter_and_stay_different() -> None:
    from noren.release.export import _short

    assert _short(["9lives", "a1", "x", "_", "größe", "A1"]) == ["v9lives", "a1", "x", "v_", "gr__e", "A1_2"]


# ------------------------------------------------------------------ columns of terms, names of nothing


def test_every_term_is_a_column() -> None:
    found = wide(with_terms())
    assert found.columns == ["signs=cough", "signs=fever", "town"]
    assert found["signs=cough"].to_list() == [1, 0, 0, 1]
    assert found["signs=fever"].to_list() == [1, 1, 0, 0]


def test_two_columns_may_come_to_one_name() -> None:
    table = pl.DataFrame({"a": ["b=c", "x", "y", "z"] * 10, "a=b": ["c", "d", "e", "f"] * 10})
    asked = [nr.models.FrequencyLDiversity(on=name, l=2) for name in table.columns]
    roles = dict.fromkeys(table.columns, "sensitive")
    made = wide(nr.anonymize(table, nr.Policy(attributes=roles, require=asked, dependence={"most": 1.0})))
    assert made.columns == ["a=b=c", "a=x", "a=y", "a=z", "a=b=c_", "a=b=d", "a=b=e", "a=b=f"]


def test_lists_are_joined_and_formulas_are_guarded() -> None:
    found = _guard_frame(pl.DataFrame({"=s": [["a", "b"], []], "t": ["=1", "x"]}))
    assert found.to_dict(as_series=False) == {"'=s": ["a;b", ""], "t": ["'=1", "x"]}


def test_a_name_of_nothing_is_a_name() -> None:
    assert _short(["", "a b", "ä", ""]) == ["v", "a_b", "v_", "v_2"]


def test_rows_of_every_table_are_numbered_from_one(tmp_path: Path) -> None:
    readers = pytest.importorskip("pyreadstat", reason="Stata needs the extra export")
    table = pl.DataFrame({"x": ["a", "b", "c", "d"] * 3, "y": ["u", "v"] * 6})
    asked = [nr.models.FrequencyLDiversity(on="x", l=2)]
    policy = nr.Policy(attributes={"x": "sensitive", "y": "plain"}, require=asked, dependence={"most": 1.0})
    export(nr.anonymize(table, policy), tmp_path / "out.DTA", "stata", m=2, seed=1)
    frame, meta = readers.read_dta(str(tmp_path / "out.DTA"))
    assert frame["_mi_id"].tolist() == [*range(1, 13)] * 2
    assert frame["_mi_m"].tolist() == [1] * 12 + [2] * 12
    assert meta.column_labels[2:] == ["x", "y"]
    assert [path.name for path in tmp_path.iterdir()] == ["out.DTA"]


def most_likely(published: list[set[str]], values: list[str]) -> dict[str, float]:
    """Counts by EM on sets that always hold the truth, each member as likely as the others."""
    x = dict.fromkeys(values, len(published) / len(values))
    for _ in range(3000):
        new = dict.fromkeys(values, 0.0)
        for held in published:
            whole = sum(x[one] for one in held)
            for one in held:
                new[one] += x[one] / whole
        x = new
    return x


def test_the_files_for_r_say_how_likely_every_cell_is(release, tmp_path):
    export(release, tmp_path / "for_r", "r")
    records, likelihood = (pl.read_csv(tmp_path / "for_r" / f"{name}.csv") for name in ("records", "likelihood"))
    assert records.columns == ["Größe (cm)", "job", "town"]
    assert records.height == 200
    jobs = likelihood.filter(pl.col("column") == "job").group_by("cell").agg("value", "likelihood")
    held = dict(zip(jobs["cell"], map(set, jobs["value"]), strict=True))
    assert [held[cell] for cell in records["job"]] == [set(cell) for cell in release.frame()["job"]]
    assert len({weight for row in jobs["likelihood"] for weight in row}) == 1
    towns = likelihood.filter(pl.col("column") == "town")
    assert dict(zip(towns["cell"], towns["value"], strict=True))[records["town"][0]] == release.frame()["town"][0]
    with pytest.raises(DataError, match="exists already"):
        export(release, tmp_path / "for_r", "r")
    with pytest.raises(DataError, match="a directory"):
        export(release, tmp_path / "for_r.csv", "r")


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r_estimates_by_the_script(release, tmp_path):
    export(release, tmp_path / "for_r", "r")
    asked = (
        'source("estimate.R"); write.csv(estimate("job", steps = 3000, tolerance = 0), "job.csv"); '
        'write.csv(estimate("job", "town"), "both.csv")'
    )
    subprocess.run(["Rscript", "-e", asked], cwd=tmp_path / "for_r", check=True, capture_output=True)
    found = pl.read_csv(tmp_path / "for_r" / "job.csv")
    expected = most_likely([set(cell) for cell in release.frame()["job"]], ["=cook", "clerk", "miner", "nurse"])
    assert dict(zip(found["job"], found["count"], strict=True)) == pytest.approx(expected, abs=1e-3)
    both = pl.read_csv(tmp_path / "for_r" / "both.csv").group_by("town").agg(pl.col("count").sum())
    towns = dict(release.frame()["town"].value_counts().iter_rows())
    assert dict(both.iter_rows()) == pytest.approx(towns, abs=0.1)
