"""Releases for other tools: what is written can be read there, and says what was published."""

from __future__ import annotations

import json
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.errors import DataError, NorenError, QueryError
from noren.release.export import FORMS, SUFFIXES, _short, export, wide


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
    typed = released.column("x").domain.typed()
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
    pyreadstat = pytest.importorskip("pyreadstat", reason="Stata and SPSS need the extra export")
    read, meta = (pyreadstat.read_dta if form == "stata" else pyreadstat.read_sav)(str(target))
    assert len(read) == 400
    assert "Größe (cm)" in meta.column_labels
    assert set(read["job"]) == {"=cook", "clerk", "miner", "nurse"}
    assert sorted(set(read["_mi_m" if form == "stata" else "imputation_"])) == [1, 2]


def test_wrong_calls_are_said(release, tmp_path):
    with pytest.raises(QueryError, match="nothing is exported as"):
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
