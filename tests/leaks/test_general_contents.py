"""Releases of general values and groups: nothing in them names a person, a place in the original, or a rare cell."""

from __future__ import annotations

import functools
import json
import pickle
import re
import traceback
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy import stats

import noren as nr
from noren.cli.main import main
from tests.leaks.world import ALPHA, IDENTIFIERS, WARDS, everything, people, use_buckets

N = 400
METHODS = (
    "mondrian", "sweep", "incognito", "hilbert", "three-phase", "anatomy", "rating", "local-suppression",
    "microaggregation", "auto",
)  # fmt: skip
GROUPING = ("anatomy", "rating")
BUCKETS = [("mondrian", "buckets"), ("rating", "buckets")]
TOWNS = {"tree": {"west": ["01001", "01008", "01999"], "east": ["52701", "52888"]}}
POLICY = """\
title = "People"
[attributes]
insurance_no = "identifier"
"full name" = "identifier"
ward = "identifier"
row = "identifier"
zip = { role = "quasi-identifier", hierarchy = "hidden-tree.csv" }
age = "quasi-identifier"
job = "plain"
ill = "sensitive"
[[require]]
model = "frequency-l-diversity"
on = "ill"
l = 2
"""


@functools.cache
def table() -> pa.Table:
    return people(N, seed=3)


def holder(folder: Path, method: str, suppression: float) -> tuple[Path, Path]:
    folder.mkdir(parents=True)
    pv.write_csv(table(), folder / "very-private-original.csv")
    (folder / "hidden-tree.csv").write_text("01001;west;*\n01008;west;*\n01999;west;*\n52701;east;*\n52888;east;*\n")
    size = '[[require]]\nmodel = "k-anonymity"\nk = 2\n' if method == "microaggregation" else ""
    section = f'{size}[method]\nname = "{method}"\nsuppression = {suppression}\n'
    (folder / "unseen-policy.toml").write_text('mechanism = "ignored"\n' + POLICY + section)
    return folder / "very-private-original.csv", folder / "unseen-policy.toml"


def make(method: str, way: str, folder: Path, monkeypatch: Any) -> Path:
    data, policy = holder(folder / "holder", method, 0.05 if way == "suppressed" else 0.0)
    target = folder / "public" / "release"
    if way == "buckets":
        use_buckets(monkeypatch)
    if way == "saved":
        nr.anonymize(data, policy).save(target)
    else:
        nr.anonymize(data, policy, to=target, file_format="csv" if way == "csv" else "parquet")
    return target


def ways() -> list[Any]:
    """Every method streamed, and every way for a method that generalises and one that groups."""
    some = [(method, way) for method in ("mondrian", "rating") for way in ("csv", "saved", "suppressed")]
    return [*((method, "streamed") for method in METHODS), *some, *BUCKETS]


@pytest.mark.parametrize(("method", "way"), ways())
def test_no_identifier_and_no_name_of_the_holders_files_is_anywhere(method, way, tmp_path, monkeypatch):
    release = make(method, way, tmp_path, monkeypatch)
    raw, text = everything(release)
    values = {str(value) for name in IDENTIFIERS for value in table()[name].to_pylist()} | {*IDENTIFIERS}
    assert len(values) == 2 * N + len(WARDS) + len(IDENTIFIERS)
    words = (str(tmp_path), "very-private-original", "unseen-policy", "hidden-tree")
    for value in (*values, *words):
        assert value.encode() not in raw
        assert value not in text
    assert b"Measles" in raw + text.encode(), "the same search finds what is published"
    suffix = "csv" if way == "csv" else "parquet"
    groups = [f"groups-1.{suffix}"] if method in GROUPING else []
    names = ["README.md", f"data.{suffix}", "datapackage.json", *groups]
    assert sorted(path.name for path in release.iterdir()) == names
    assert [path.name for path in release.parent.iterdir()] == ["release"]
    known = re.compile(r"data\.\w+|datapackage\.json|groups-\d+\.\w+|README\.md")
    assert all(known.fullmatch(path.name) for path in release.iterdir())
    for path in release.glob("*.parquet"):
        assert pq.read_metadata(path).metadata is None
        assert pq.read_schema(path).metadata is None
    if suffix != "csv":
        names = [name.removesuffix("_group") for name in pq.read_schema(release / f"data.{suffix}").names]
        assert names == ["zip", "age", "job", "ill"]


@pytest.mark.parametrize("method", METHODS)
def test_the_manifest_tells_nothing_of_settings_and_notes(method, tmp_path, monkeypatch):
    package = json.loads((make(method, "streamed", tmp_path, monkeypatch) / "datapackage.json").read_text())
    (used,) = package["noren"]["methods"]
    chosen = used.pop("chosen", None)
    assert ("class_size" in used) == (method == "hilbert"), "blind classes name the one number that secrets decide"
    used.pop("class_size", None)
    assert used == {"name": method, "on": []}
    # without its name nobody could say what the rule of the method tells; of settings nothing is said
    assert chosen in METHODS if method == "auto" else chosen is None
    assert chosen != "auto"
    assert package["noren"].keys() == {
        "format", "noren", "title", "records", "suppressed", "rows_are_people", "sample", "columns", "requirements",
        "methods", "randomness", "verdicts", "sha256", "mechanism",
    }  # fmt: skip


@pytest.mark.parametrize("method", ["mondrian", "anatomy"])
def test_a_release_in_memory_drags_nothing_of_the_original_along(method, tmp_path):
    data, policy = holder(tmp_path / "holder", method, 0.0)
    release = nr.anonymize(data, policy)
    assert vars(release).keys() == {"manifest", "path", "records", "statements", "store", "suppressed", "title"}
    kept = pickle.dumps(release)
    for value in [*table()["full name"].to_pylist(), *WARDS, str(tmp_path), "very-private-original"]:
        assert value.encode() not in kept
    assert b"Measles" in kept


# ---------------------------------------------------------------- order

ROLES = {"zip": {"role": "quasi-identifier", "hierarchy": TOWNS}, "age": "quasi-identifier", "ill": "sensitive"}


def released(method: str, **roles: Any) -> pl.DataFrame:
    """A release beside the true place and values of every record, over a number that is published for the test."""
    data = table().select(["row", "zip", "age", "job", "ill"])
    attributes = {"row": "plain", **ROLES, "job": "plain"} | roles
    asked: list[Any] = [nr.models.FrequencyLDiversity(on="ill", l=2)]
    asked += [nr.models.KAnonymity(k=2)] if method == "microaggregation" else []
    policy = nr.Policy(mechanism="ignored", attributes=attributes, require=asked, method=method)
    frame = nr.anonymize(data, policy).frame().with_row_index("place")
    truth = pl.DataFrame({"row": range(N), "truth": data["ill"].to_pylist(), "years": data["age"].to_pylist()})
    return frame.join(truth, on="row", validate="1:1")


def unrelated(one: Any, other: Any) -> bool:
    """Whether ranks correlate no more than chance makes them. n - 1 times the square is chi-squared with one degree."""
    rho = stats.spearmanr(one, other).statistic
    return bool((len(one) - 1) * rho**2 < stats.chi2.isf(ALPHA, 1))


@pytest.mark.parametrize("method", METHODS)
def test_rows_stand_in_no_order_of_the_original(method):
    frame = released(method)
    assert unrelated(frame["place"], frame["row"])
    assert unrelated(frame["place"], frame["years"])
    assert not unrelated(frame["row"], frame["row"] + 0), "the same test sees an order where there is one"


@pytest.mark.parametrize("method", GROUPING)
def test_group_numbers_tell_neither_place_nor_value(method):
    frame = released(method)
    assert frame["ill"].n_unique() > N / 5
    codes = frame["truth"].cast(pl.Categorical).to_physical()
    for known in (frame["row"], frame["place"], frame["years"], codes):
        assert unrelated(frame["ill"], known)
    sizes = frame.group_by("ill").agg(pl.len(), pl.col("row").min(), pl.col("truth").min())
    assert unrelated(sizes["ill"], sizes["row"]), "groups are not numbered by their first record"
    assert unrelated(sizes["ill"], sizes["truth"].cast(pl.Categorical).to_physical())


@pytest.mark.parametrize("method", GROUPING)
def test_group_numbers_are_drawn_anew(method):
    """The group of the first record, over many releases: every number has the same chance."""
    data = table().select(["zip", "age", "job", "ill", "row"])
    attributes = {**ROLES, "job": "plain", "row": "plain"}
    policy = nr.Policy(
        mechanism="ignored",
        attributes=attributes,
        require=[nr.models.FrequencyLDiversity(on="ill", l=2)],
        method=method,
    )
    places = []
    for _ in range(30):
        release = nr.anonymize(data, policy)
        frame = release.frame()
        groups = release.manifest.column("ill").groups
        places.append((frame.filter(pl.col("row") == 0)["ill"][0] + 0.5) / groups)
    assert stats.kstest(places, "uniform").pvalue > ALPHA
    assert len(set(places)) > 10


@pytest.mark.parametrize("method", GROUPING)
def test_partners_are_drawn_anew(method):
    """Who shares a group with whom must not follow from the order of the table."""
    frame = released(method).sort("ill", "row")
    pairs = frame.group_by("ill").agg(pl.col("row").min().alias("low"), pl.col("row").max().alias("high"))
    gaps = (pairs["high"] - pairs["low"]).to_numpy()
    close = int((gaps <= 4).sum())
    assert close <= stats.binom.isf(ALPHA, len(gaps), 3 * 8 / N)


def test_listed_general_values_stand_by_value_and_not_by_record():
    data = table().select(["zip", "age", "job", "ill"])
    attributes = {**ROLES, "job": "plain"}
    policy = nr.Policy(
        mechanism="ignored",
        attributes=attributes,
        require=[nr.models.FrequencyLDiversity(on="ill", l=3)],
        method="mondrian",
    )
    release = nr.anonymize(data, policy)
    runs = release.column("age").nodes.runs
    assert runs == sorted(runs)
    assert len(runs) > 5


# ---------------------------------------------------------------- errors

MARK = "Xq7Marker"
NUMBER = "987650123"
LINES = tuple(f"k{i},z{i % 3},{20 + i % 30},{'abcd'[i % 4]}" for i in range(60))
TREE = "z0;x;*\nz1;x;*\nz2;y;*\n"
CASES = {
    "outside the hierarchy": (f"k99,{MARK},30,a", "1 rare value", {"z": ', hierarchy = "tree.csv"'}),
    "outside the tree of secrets": (
        f"k99,z1,30,{MARK}", "1 rare value", {"s": ', hierarchy = { tree = { u = ["a", "b"], v = ["c", "d"] } }'}),
    "outside the declared values": (f"k99,{MARK},30,a", "1 rare value", {"z": ', values = ["z0", "z1", "z2"]'}),
    "outside the declared secrets": (f"k99,z1,30,{MARK}", "1 rare value", {"s": ', values = ["a", "b", "c", "d"]'}),
    "text under widths": (f"k99,z1,{MARK},a", "needs numbers", {"n": ", hierarchy = { widths = [5, 10] }"}),
    "beyond the intervals": (f"k99,z1,{NUMBER},a", "do not cover", {"n": ", hierarchy = { intervals = [[0, 99]] }"}),
    "text in bins": (f"k99,z1,{MARK},a", "not numbers", {"n": ", bins = [0, 30, 60]"}),
    "beyond the bins": (f"k99,z1,{NUMBER},a", "1 cells lie outside", {"n": ", bins = [0, 30, 60]"}),
    "a rare secret that is refused": (f"k99,z1,30,{MARK}", "fewer than 3", {"s": ', min_count = 3, rare = "refuse"'}),
    "more than there is": (f"k99,z1,30,{MARK}", "[345]", {"l": "9"}),
}  # fmt: skip


def write(case: str, method: str, folder: Path) -> tuple[Path, Path, str]:
    line, says, changes = CASES[case]
    (folder / "data.csv").write_text("\n".join(["key,zip,age,s", *LINES, line]) + "\n")
    (folder / "tree.csv").write_text(TREE)
    (folder / "policy.toml").write_text(
        '[attributes]\nkey = "identifier"\n'
        f'zip = {{ role = "quasi-identifier"{changes.get("z", "")} }}\n'
        f'age = {{ role = "quasi-identifier"{changes.get("n", "")} }}\n'
        f's = {{ role = "sensitive"{changes.get("s", "")} }}\n'
        f'[[require]]\nmodel = "frequency-l-diversity"\non = "s"\nl = {changes.get("l", "2")}\n'
        f'[method]\nname = "{method}"\n'
    )
    return folder / "data.csv", folder / "policy.toml", says


@pytest.mark.parametrize("method", ["mondrian", "anatomy", "auto"])
@pytest.mark.parametrize("case", CASES)
def test_no_error_quotes_a_cell(case, method, tmp_path):
    data, policy, says = write(case, method, tmp_path)
    with pytest.raises(nr.NorenError, match=says) as caught:
        nr.anonymize(data, policy, to=tmp_path / "release")
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(vars(caught.value))
    for command in (["anonymize", str(data), str(policy), "--to", str(tmp_path / "out")], ["compare", data, policy]):
        result = CliRunner().invoke(main, [*map(str, command)])
        assert result.exit_code in (1, 2), result.output
        told += result.output
    assert MARK not in told
    assert NUMBER not in told
    assert not (tmp_path / "release").exists()
    assert not (tmp_path / "out").exists()


def test_verifying_against_another_original_quotes_no_cell(tmp_path):
    data, policy, _ = write("outside the declared values", "mondrian", tmp_path)
    data.write_text("\n".join(["key,zip,age,s", *LINES]) + "\n")
    nr.anonymize(data, policy, to=tmp_path / "release")
    data.write_text("\n".join(["key,zip,age,s", *LINES, f"k99,{MARK},30,a"]) + "\n")
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "release"), "--original", str(data)])
    assert result.exit_code == 2
    assert "outside its domain" in result.output
    assert MARK not in result.output
