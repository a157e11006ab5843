"""No error repeats what stands in a record's cell: messages, hints, tracebacks and the command line's output."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from tests.unit.sources.test_workbook import workbook

MARK = "Xq7Marker"
NUMBER = "987650123"
COLUMNS = "key,zip,s"
RECORDS = [f"k{i},z{i % 3},{'abcd'[i % 4]}" for i in range(40)]
REQUIRE = '[[require]]\nmodel = "frequency-l-diversity"\non = "s"\nl = 2\n'
ORDERED = '[[require]]\nmodel = "t-closeness"\non = "s"\nt = 0.3\ndistance = "ordered"\n'
FAR_APART = '[[require]]\nmodel = "semantic-diversity"\non = "s"\nl = 3\nd = 3\n'


@dataclass(frozen=True)
class Case:
    """One bad line among forty good ones, and the policy it is bad under."""

    line: str | bytes
    says: str
    zip: str = ""
    s: str = ""
    more: str = ""
    require: str = REQUIRE
    before: tuple[str, ...] = tuple(RECORDS)
    files: dict[str, str] = field(default_factory=dict)
    secret: bool = False

    def write(self, folder: Path) -> tuple[Path, Path]:
        line = self.line if isinstance(self.line, bytes) else self.line.encode()
        content = "\n".join([COLUMNS, *self.before]).encode() + b"\n" + line + b"\n"
        (folder / "data.csv").write_bytes(content)
        roles = (
            'key = { role = "identifier" }\n'
            f'zip = {{ role = "quasi-identifier"{self.zip} }}\n'
            f's = {{ role = "sensitive"{self.s} }}\n'
        )
        randomness = '\n[randomness]\nrecord_key = "key"\nsecret = "secret.key"\n' if self.secret else ""
        text = f"[attributes]\n{roles}\n{self.require}\n{self.more}{randomness}"
        (folder / "policy.toml").write_text(text, encoding="utf-8")
        for name, content_text in self.files.items():
            (folder / name).write_text(content_text, encoding="utf-8")
        if self.secret:
            nr.Secret.create(folder / "secret.key")
        return folder / "data.csv", folder / "policy.toml"


NUMBERS = tuple(f"k{i},{i},{'abcd'[i % 4]}" for i in range(40))
ABCD = ', values = ["a", "b", "c", "d"]'
GRADES = tuple(f"k{i},z,{'abcd'[i % 4]}" for i in range(40))
MARKS = tuple(f"k{i},z,{i % 4}" for i in range(40))
CASES = {
    "a cell too many": Case(f"k99,z1,a,{MARK}", "cells, the header has 3"),
    "a cell too few": Case(MARK, "cells, the header has 3"),
    "a quote that is never closed": Case(f'k99,"z1,{MARK}', "quote"),
    "bytes that are not UTF-8": Case(
        b"k99,z\xff" + MARK.encode() + b",a", "not valid utf-8", more='[data]\nencoding = "utf-8"\n'
    ),
    "bytes that are not cp1252": Case(
        b"k99,z\x81" + MARK.encode() + b",a", "not valid cp1252", more='[data]\nencoding = "cp1252"\n'
    ),
    "text that is not UTF-16": Case(f"k99,{MARK},a", "utf-16", more='[data]\nencoding = "utf-16"\n'),
    "a value outside the declared domain": Case(f"k99,z1,{MARK}", "1 rare value", s=ABCD),
    "an exact value outside its domain": Case(f"k99,{MARK},a", "1 rare value", zip=', values = ["z0", "z1", "z2"]'),
    "a value outside the hierarchy": Case(
        f"k99,{MARK},a", "1 rare value", zip=', hierarchy = "tree.csv"', files={"tree.csv": "z0;*\nz1;*\nz2;*\n"}
    ),
    "a value outside the tree": Case(
        f"k99,z1,{MARK}", "1 rare value", s=', hierarchy = { tree = { x = ["a", "b"], y = ["c", "d"] } }'
    ),
    "text among binned numbers": Case(
        f"k99,{MARK},a", "values that are not numbers", zip=", bins = [0, 20, 40]", before=NUMBERS
    ),
    "a number outside the bins": Case(
        f"k99,{NUMBER},a", "1 cells lie outside", zip=", bins = [0, 20, 40]", before=NUMBERS
    ),
    "text under an interval hierarchy": Case(
        f"k99,{MARK},a", "needs numbers", zip=", hierarchy = { widths = [5, 10] }", before=NUMBERS
    ),
    "a number outside the intervals": Case(
        f"k99,{NUMBER},a", "do not cover", zip=", hierarchy = { intervals = [[0, 20, 40]] }", before=NUMBERS
    ),
    "text under a numeric distance": Case(
        f"k99,z,{MARK}", "domain of numbers", s=', distance = "numeric"', before=GRADES
    ),
    "a rare value that is refused": Case(
        f"k99,z1,{MARK}", "fewer than 3 records", s=', min_count = 3, rare = "refuse"'
    ),
    "a missing cell that is refused": Case(f"{MARK},,a", "1 cells are missing", zip=', missing = "reject"'),
    "a missing cell that has no order": Case(
        f"k99,{MARK},", "no position in the order", s=ABCD + ', distance = "ordinal"', require=ORDERED
    ),
    "a rare value without partners": Case(
        f"k99,z,{MARK}", "are not shown", s=', distance = "ordinal"', require=FAR_APART, before=GRADES
    ),
    "numbers and another text in an order": Case(
        f"k99,z,{MARK}", "so they have no order", s=', distance = "ordinal"', require=FAR_APART, before=MARKS
    ),
    "a repeated record key": Case(
        f"{MARK},z1,a", "different values of the identifier", before=(*RECORDS, f"{MARK},z2,b"), secret=True
    ),
    "a missing record key": Case(f",{MARK},a", "record key is missing", secret=True),
    "a sensitive column of one value": Case(f"k99,z1,{MARK}", "single value", before=(f"k1,z1,{MARK}",)),
    "more diversity than values": Case(
        f"k99,z1,{MARK}", "exceeds the 5 values", require=REQUIRE.replace("l = 2", "l = 6")
    ),
    "as much diversity as values": Case(
        f"k99,z1,{MARK}", "whole domain of 5", require=REQUIRE.replace("l = 2", "l = 5")
    ),
    "parameters that fall short": Case(
        f"k99,z1,{MARK}",
        "nothing is published",
        require=ORDERED.replace("ordered", "equal"),
        more='[method]\nname = "decoys"\nparameters.s = { eta = 2, p = 0.9 }\n',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_no_error_quotes_a_cell(name, tmp_path):
    data, policy = CASES[name].write(tmp_path)
    assert (MARK if NUMBER.encode() not in data.read_bytes() else NUMBER).encode() in data.read_bytes()
    with pytest.raises(nr.NorenError, match=CASES[name].says) as caught:
        nr.anonymize(data, policy, to=tmp_path / "release")
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(vars(caught.value))
    assert MARK not in told
    assert NUMBER not in told
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("name", CASES)
def test_no_output_of_the_command_quotes_a_cell(name, options, tmp_path):
    data, policy = CASES[name].write(tmp_path)
    result = CliRunner().invoke(main, ["anonymize", str(data), str(policy), "--to", str(tmp_path / "out"), *options])
    assert result.exit_code == (1 if "fall short" in name else 2)
    assert result.output
    assert MARK not in result.output
    assert NUMBER not in result.output
    assert not (tmp_path / "out").exists()


def test_a_value_that_many_share_may_be_named(tmp_path):
    """Between a value of the domain and somebody's cell lie five records. So the search above would find a mark."""
    before = (*RECORDS, *(f"m{i},z1,{MARK}" for i in range(4)))
    data, policy = Case(f"k99,z1,{MARK}", "", s=ABCD, before=before).write(tmp_path)
    with pytest.raises(nr.errors.PolicyError, match=MARK):
        nr.anonymize(data, policy)


ILLS = ("flu", "gout", "burn")
HEADLESS = {
    "texts that return": [f"{MARK}{i},{20 + i % 9},{'nurse' if i % 2 else 'clerk'},{ILLS[i % 3]}" for i in range(60)],
    "texts alone": [f"{MARK}{i},Ulm,{'nurse' if i % 2 else 'clerk'},{ILLS[i % 3]}" for i in range(60)],
    "no text returns": [f"{MARK}{i},town{i},job{i},ill{i}" for i in range(60)],
    "no number in the first record": [f"{MARK},unknown,job,x", *(f"Bob{i},{i % 9},nurse,flu" for i in range(60))],
    "holes in the first record": [f"{MARK},,q,x", *(f"Bob{i},{i % 9},nurse,flu" for i in range(60))],
    "two records": [f"{MARK},34,nurse,flu", "Bob,31,clerk,gout"],
}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "xlsx"])
@pytest.mark.parametrize("name", HEADLESS)
def test_the_first_record_of_a_file_without_a_header_is_not_quoted(name, suffix, tmp_path):
    data, policy = tmp_path / f"data.{suffix}", tmp_path / "policy.toml"
    rows = [line.split(",") for line in HEADLESS[name]]
    if suffix == "xlsx":
        workbook(data, [[int(cell) if cell.isdecimal() else cell or None for cell in row] for row in rows])
    else:
        data.write_text("\n".join(("\t" if suffix == "tsv" else ",").join(row) for row in rows) + "\n")
    roles = 'person = "identifier"\nage = "quasi-identifier"\nwork = "quasi-identifier"\ndisease = "sensitive"\n'
    policy.write_text(f"[attributes]\n{roles}\n" + REQUIRE.replace('"s"', '"disease"'))
    for words in (["anonymize", data, policy, "--to", tmp_path / "out"], ["compare", data, policy],
                  ["risk", data, "--quasi", "age,work"], ["hierarchy", data, "age"], ["strength", data, "disease"],
                  ["measure", data, "--quasi", "age", "--sensitive", "disease"]):  # fmt: skip
        for more in ([], ["--json"]):
            done = CliRunner().invoke(main, [str(word) for word in [*words, *more]])
            assert done.exit_code == 2, done.output
            said = done.output.replace(str(tmp_path), "")
            assert not [cell for cell in rows[0] if cell and re.search(rf"\b{cell}\b", said)], said


def test_at_most_five_columns_and_ten_problems_are_named(tmp_path):
    data, policy = tmp_path / "data.csv", tmp_path / "policy.toml"
    names = [f"column_of_name_{i}" for i in range(10_000)]
    lines = [",".join(["ab"[i % 2], *map(str, range(10_000))]) for i in range(3)]
    data.write_text("\n".join([",".join(["s", *names]), *lines]))
    policy.write_text(f'[attributes]\ns = "sensitive"\n{REQUIRE}')
    for words in (["anonymize", data, policy, "--to", tmp_path / "out"], ["risk", data, "--quasi", "nobody"],
                  ["hierarchy", data, "nobody"], ["strength", data, "nobody"]):  # fmt: skip
        for more in ([], ["--json"]):
            done = CliRunner().invoke(main, [str(word) for word in [*words, *more]])
            assert done.exit_code == 2, done.output
            assert len(set(re.findall(r"column_of_name_\d+", done.output))) <= 5
            assert done.output.count("\n") < 30
    with pytest.raises(nr.errors.PolicyError, match=r"9,995 more columns that are not in the policy"):
        nr.anonymize(data, policy)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_verifying_against_another_original_quotes_no_cell(options, tmp_path):
    data, policy = Case("k98,z1,a", "").write(tmp_path)
    nr.anonymize(data, policy, to=tmp_path / "release")
    other = tmp_path / "other.csv"
    other.write_text("\n".join([COLUMNS, *RECORDS, f"k99,z1,{MARK}"]), encoding="utf-8")
    command = ["verify", str(tmp_path / "release"), "--policy", str(policy), "--original", str(other)]
    result = CliRunner().invoke(main, [*command, *options])
    assert result.exit_code == 2
    assert "outside its domain" in result.output
    assert MARK not in result.output


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[MARK]] * 3),
        pa.array([MARK.encode()] * 3, pa.binary()),
        pa.array([{"x": MARK}] * 3),
    ],
    ids=["list", "binary", "struct"],
)
def test_a_column_of_a_wrong_type_is_not_quoted(column):
    policy = nr.Policy(
        attributes={"q": "plain", "s": "sensitive"}, require=[{"model": "frequency-l-diversity", "on": "s", "l": 2}]
    )
    with pytest.raises(nr.errors.DataError, match="not a single value") as caught:
        nr.anonymize(pa.table({"q": column, "s": ["a", "b", "c"]}), policy)
    assert MARK not in "".join(traceback.format_exception(caught.value))


def test_a_column_of_mixed_types_is_not_quoted():
    """pandas lets a column hold numbers and texts; the conversion to Arrow fails and would say where."""
    policy = nr.Policy(
        attributes={"q": "plain", "s": "sensitive"}, require=[{"model": "frequency-l-diversity", "on": "s", "l": 2}]
    )
    with pytest.raises(nr.errors.DataError) as caught:
        nr.anonymize(pd.DataFrame({"q": [1, MARK, 2], "s": ["a", "b", "c"]}), policy)
    assert MARK not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("keys", [pa.array([1.5, 2.5, 987.25]), pa.array([MARK.encode(), b"b", b"c"], pa.binary())])
def test_a_record_key_of_a_wrong_type_is_not_quoted(keys, tmp_path):
    nr.Secret.create(tmp_path / "secret.key")
    policy = nr.Policy(
        attributes={"key": "identifier", "s": "sensitive"},
        require=[{"model": "frequency-l-diversity", "on": "s", "l": 2}],
        randomness={"record_key": "key"},
    )
    with pytest.raises(nr.errors.DataError, match=r"must be text or an integer|not a single value") as caught:
        nr.anonymize(pa.table({"key": keys, "s": ["a", "b", "c"]}), policy, secret=tmp_path / "secret.key")
    told = "".join(traceback.format_exception(caught.value))
    assert MARK not in told
    assert "987" not in told
