"""Labels that a spreadsheet would run: CSV files hold them behind an apostrophe, and give them back unchanged."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import noren as nr
from noren.cli.main import main
from noren.release.package import checksum
from noren.statements.texts import guard_formulas, guard_text, unguard_formulas

EVIL = ("=cmd()|'/c calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=2", "\n=3", "'quoted", "''=x", "＝4")
HARMLESS = ("-5", "+3.5", "-1e-07", "plain", "a=b", "[-5, 3)", "(other)")
STARTS = tuple("=+-@\t\r\n＝＋－＠")


def runs(cell: str) -> bool:
    """Whether a spreadsheet would take the cell for a formula, by a rule of its own."""
    if not cell.startswith(STARTS):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return cell[0] in "\t\r\n"


@given(st.text())
def test_every_text_comes_back_and_none_runs(text):
    told = guard_text(text)
    assert not runs(told)
    assert unguard_formulas(pa.array([told]))[0].as_py() == text


def test_what_is_harmless_stays_as_it_is():
    assert guard_formulas(pa.array(HARMLESS)).to_pylist() == list(HARMLESS)
    assert guard_formulas(pa.array([None, "", "=1"])).to_pylist() == [None, "", "'=1"]
    assert guard_formulas(pa.array([-5])).to_pylist() == [-5]


def table(n: int = 40) -> pa.Table:
    return pa.table(
        {
            "=HYPERLINK(1)": [EVIL[i % len(EVIL)] for i in range(n)],
            "age": [-(i % 3) for i in range(n)],
            "@ill": [("=flu", "-cold", "+gout", "burn")[i % 4] for i in range(n)],
            "t": [("=cough", "+fever", "=cough;+fever", "")[i % 4] for i in range(n)],
        }
    )


def policy(method: str, folder: Path) -> nr.Policy:
    (folder / "know.csv").write_text("label,term\n=a,=cough\n=a,+fever\n@b,=cough\n@b,+fever\n-c,\n")
    attributes = {"=HYPERLINK(1)": "plain", "age": "quasi-identifier", "@ill": "sensitive", "t": "plain"}
    require = [{"model": "frequency-l-diversity", "on": "@ill", "l": 2}]
    options: dict = {"name": method}
    if method == "suppress":
        attributes["t"] = {"role": "quasi-sensitive", "separator": ";", "knowledge": "know.csv"}
        require.append({"model": "qs-diversity", "on": "t", "c": 2.0, "l": 2})
        options["nodes"] = 20
    return nr.Policy(attributes=attributes, require=require, method=options, base=folder, dependence={"most": 1.0})


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("method", ["decoys", "mondrian", "anatomy", "suppress"])
def test_no_csv_file_of_a_release_runs_and_all_values_come_back(method, tmp_path):
    release = nr.anonymize(table(), policy(method, tmp_path))
    release.save(tmp_path / "csv", "csv")
    release.save(tmp_path / "parquet", "parquet")
    files = sorted((tmp_path / "csv").glob("*.csv"))
    assert len(files) == (2 if method in ("anatomy", "suppress") else 1)
    for path in files:
        found = [cell for line in cells(path) for cell in line]
        assert not [cell for cell in found if runs(cell)]
        assert any(cell.startswith("'") for cell in found)
    opened = nr.open_release(tmp_path / "csv")
    key = ["=HYPERLINK(1)", "age"]
    assert opened.frame().sort(key).equals(nr.open_release(tmp_path / "parquet").frame().sort(key))
    assert set(opened.frame()["=HYPERLINK(1)"]) == set(EVIL)
    for statement in opened.statements:
        if statement.table is not None:
            assert statement.table.value.tolist() == release.column(statement.name).table.value.tolist()
        if statement.terms is not None:
            known = statement.column.known
            assert known.labels == release.column(statement.name).column.known.labels == ("=a", "@b", "-c")
            assert known.terms == ("+fever", "=cough")
    assert sum(statement.table is not None for statement in opened.statements) == (method == "anatomy")
    assert sum(statement.terms is not None for statement in opened.statements) == (method == "suppress")
    assert all(verdict.holds for verdict in nr.verify(opened, policy(method, tmp_path), original=table()))


def test_the_descriptor_says_how_texts_were_escaped(tmp_path):
    nr.anonymize(table(), policy("anatomy", tmp_path)).save(tmp_path / "csv", "csv")
    package = json.loads((tmp_path / "csv" / "datapackage.json").read_text(encoding="utf-8"))
    for resource in package["resources"]:
        assert resource["schema"]["escape"]["prefix"] == "'"
        assert set("=+-@\t\r'") <= set(resource["schema"]["escape"]["before"])
        header = cells(tmp_path / "csv" / resource["path"])[0]
        assert [field["name"] for field in resource["schema"]["fields"]] == header
    nr.anonymize(table(), policy("decoys", tmp_path)).save(tmp_path / "parquet", "parquet")
    package = json.loads((tmp_path / "parquet" / "datapackage.json").read_text(encoding="utf-8"))
    assert "escape" not in package["resources"][0]["schema"]
    assert package["resources"][0]["schema"]["fields"][0]["name"] == "=HYPERLINK(1)"


def test_a_release_of_an_early_version_is_read_as_it_was_written(tmp_path):
    """Its descriptor does not speak of escapes: an apostrophe is then part of the text."""
    made = nr.anonymize(pa.table({"p": ["'x", "y"] * 5, "s": ["a", "b", "c", "d", "e"] * 2}), nr.Policy(
        attributes={"p": "plain", "s": "sensitive"}, require=[{"model": "frequency-l-diversity", "on": "s", "l": 2}]
    ))  # fmt: skip
    made.save(tmp_path / "csv", "csv")
    data, descriptor = tmp_path / "csv" / "data.csv", tmp_path / "csv" / "datapackage.json"
    data.write_text(data.read_text(encoding="utf-8").replace("''x", "'x"), encoding="utf-8")
    package = json.loads(descriptor.read_text(encoding="utf-8"))
    package["resources"][0] |= {"bytes": data.stat().st_size, "hash": f"sha256:{checksum(data)}"}
    del package["resources"][0]["schema"]["escape"]
    descriptor.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert set(nr.open_release(tmp_path / "csv").frame()["p"]) == {"'x", "y"}


def test_estimates_as_csv_do_not_run(tmp_path):
    nr.anonymize(table(), policy("decoys", tmp_path)).save(tmp_path / "release")
    target = tmp_path / "cells.csv"
    command = ["estimate", str(tmp_path / "release"), "--by", "=HYPERLINK(1)", "--by", "@ill", "--csv", str(target)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    found = cells(target)
    assert found[0][:2] == ["'=HYPERLINK(1)", "'@ill"]
    assert len(found) == 1 + len(EVIL) * 4
    assert not [cell for line in found for cell in line if runs(cell)]


def test_what_is_written_as_csv_at_once_is_read_back_with_its_apostrophes_taken_off(tmp_path):
    """`anonymize` verifies the file that it wrote, and gives back a release that reads it."""
    made = nr.anonymize(table(), policy("decoys", tmp_path), to=tmp_path / "out", file_format="csv")
    assert all(verdict.holds for verdict in made.verdicts)
    assert set(made.frame()["=HYPERLINK(1)"]) == set(EVIL)
    assert set(nr.open_release(tmp_path / "out").frame()["=HYPERLINK(1)"]) == set(EVIL)
