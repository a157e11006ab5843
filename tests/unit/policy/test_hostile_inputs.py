"""Tables, policies and side files that somebody made to hurt: refused with an error of the package, at little cost."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import subprocess
import sys
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.errors import DataError, NorenError, PolicyError
from noren.schema import hierarchy
from noren.schema.hierarchy import Hierarchy, HierarchyError
from noren.schema.knowledge import Knowledge, KnowledgeError
from noren.sources.csv import CsvSource, sniff_separator
from tests.unit.release.test_faults import TABLE, holder


def test_a_bomb_as_input_is_refused_by_its_metadata(tmp_path, monkeypatch):
    monkeypatch.setattr("noren.sources.arrow.UNPACKED", 1 << 20)
    path = tmp_path / "bomb.parquet"
    bomb = pa.table({"age": ["a" * 40_000_000]})
    pq.write_table(bomb, path, compression="zstd", use_dictionary=False, write_statistics=False)
    with pytest.raises(DataError, match="claims to unpack"):
        nr.anonymize(path, nr.Policy.load(holder(tmp_path, "decoys")))


def test_damaged_parquet_and_arrow_tables_are_refused(tmp_path):
    policy = nr.Policy.load(holder(tmp_path, "anatomy"))
    pq.write_table(TABLE, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    for name in ("a.parquet", "a.arrow"):
        whole = (tmp_path / name).read_bytes()
        for seed in range(150):
            r = random.Random(seed)
            content = bytearray(whole)
            for _ in range(r.choice((1, 2, 8))):
                content[r.randrange(len(content))] = r.randrange(256)
            (tmp_path / name).write_bytes(content)
            with contextlib.suppress(NorenError):
                nr.anonymize(tmp_path / name, policy)


# ---------------------------------------------------------------- delimited text

PEAK = """
import resource, sys
from pathlib import Path
from noren.sources.csv import CsvSource
from noren.errors import DataError
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def read(path):
    try:
        source = CsvSource(Path(path))
        return sum(batch.num_rows for batch in source.batches(source.columns))
    except DataError:
        return -1
read(sys.argv[1])
before = peak()
print(read(sys.argv[2]), peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
@pytest.mark.parametrize(("line", "rows"), [(b"1,a\n", 1 << 25), (b"0", -1), (b'"', -1)])
def test_a_compressed_file_of_gigabytes_costs_no_memory(line, rows, tmp_path):
    """128 MB behind some kilobytes are read in pieces, or refused where they have no lines."""
    with gzip.open(tmp_path / "bomb.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"q,s\n")
        block = line * (1 << 20)
        for _ in range((1 << 27) // len(block)):
            file.write(block)
    with gzip.open(tmp_path / "small.csv.gz", "wb") as file:
        file.write(b"q,s\n" + b"1,a\n" * (1 << 22))
    command = [sys.executable, "-c", PEAK, str(tmp_path / "small.csv.gz"), str(tmp_path / "bomb.csv.gz")]
    ended = subprocess.run(command, capture_output=True, timeout=300, check=True, text=True)
    found, more = map(int, ended.stdout.split())
    assert found == rows
    assert more < 60_000, f"{more} kB more than for 16 MB"


def test_files_under_a_wrong_suffix_are_named_for_what_they_are(tmp_path):
    plain = b"q,s\n1,a\n2,b\n"
    with zipfile.ZipFile(tmp_path / "zip.csv", "w") as archive:
        archive.writestr("x.csv", plain)
    (tmp_path / "gzip.csv").write_bytes(gzip.compress(plain))
    (tmp_path / "plain.csv.gz").write_bytes(plain)
    for name, says in {"zip.csv": "ZIP", "gzip.csv": "gzip", "plain.csv.gz": "cannot be read"}.items():
        with pytest.raises(DataError, match=says):
            CsvSource(tmp_path / name)
    (tmp_path / "upper.csv.GZ").write_bytes(gzip.compress(plain))
    (tmp_path / "plain.csv.bz2").write_bytes(plain)
    for name in ("upper.csv.GZ", "plain.csv.bz2"):
        source = CsvSource(tmp_path / name)
        assert sum(batch.num_rows for batch in source.batches(source.columns)) == 2


def test_a_compressed_file_that_is_cut_off_or_damaged_is_refused(tmp_path):
    r = random.Random(1)
    whole = gzip.compress(b"q,s\n" + b"".join(b"%d,a\n" % r.randrange(10**9) for _ in range(200_000)))
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 255
    for content in (whole[:-2000], bytes(damaged)):
        (tmp_path / "x.csv.gz").write_bytes(content)
        with pytest.raises(DataError):
            list(CsvSource(tmp_path / "x.csv.gz").batches(["q"]))


@pytest.mark.parametrize("text", ['"' * 200_000, ",;" * 100_000, 'a"b,' * 50_000, "\r" * 200_000, "\\" * 200_000])
def test_sniffing_looks_at_every_character_a_few_times(text, tmp_path):
    """No pattern is matched against the sample: what the sniffer costs grows with its length and no faster."""
    assert sniff_separator(text) in ",;\t|"
    (tmp_path / "x.csv").write_text(text + "\n1\n", newline="")
    with contextlib.suppress(NorenError):
        list(CsvSource(tmp_path / "x.csv").batches([]))


@pytest.mark.parametrize("name", ["../../x", "a\nb", "=cmd()", "/etc/passwd", "\x1b[2J", "a" * 5000, "<script>", "."])
def test_column_names_are_names_and_nothing_else(name, tmp_path):
    table = pa.table({name: ["a", "b", "c"] * 4, "s": ["x", "y", "z", "w"] * 3})
    policy = nr.Policy(
        attributes={name: "quasi-identifier", "s": "sensitive"},
        require=[{"model": "frequency-l-diversity", "on": "s", "l": 2}],
        method={"name": "anatomy"},
    )
    for kind in ("csv", "parquet"):
        nr.anonymize(table, policy, to=tmp_path / "public" / kind, file_format=kind)
        opened = nr.open_release(tmp_path / "public" / kind)
        assert opened.columns == (name, "s")
        assert sorted(opened.frame()[name]) == sorted(table[name].to_pylist())
        files = sorted(path.name for path in (tmp_path / "public" / kind).iterdir())
        assert files == sorted(["README.md", "datapackage.json", f"data.{kind}", f"groups-1.{kind}"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["public"]


# ---------------------------------------------------------------- policies, hierarchies, knowledge, distances

HEAD = '[attributes]\nq = { role = "quasi-identifier"%s }\ns = { role = "sensitive"%s }\n'
ASK = '[[require]]\nmodel = "frequency-l-diversity"\non = "s"\nl = %s\n'
DOTTED = ".".join(["a"] * 5_000)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "{a = " * 3000 + "1" + "}" * 3000,
        "x = " + "[" * 3000 + "]" * 3000,
        f"[attributes.z]\nrole = 'plain'\nhierarchy.tree.{DOTTED} = ['x']\n",
        f"title.{DOTTED} = 1\n",
        f"[method]\nname = 'suppress'\ngeneralise.{DOTTED} = 1\n",
        HEAD % ("", "") + ASK % ("9" * 5000),
        HEAD % ("", "") + ASK % ("9" * 40),
        HEAD % ("", "") + ASK % 2 + "[method]\nname = 'hilbert'\nl = 99999999999999999999\n",
        HEAD % (", hierarchy = { intervals = [[0, nan, 5]] }", "") + ASK % "nan",
        "\x00",
        "=" * 10_000,
    ],
    ids=lambda text: text[:20],
)
def test_hostile_policies_are_refused(text):
    with pytest.raises(PolicyError):
        nr.Policy.parse(text)


def test_a_policy_that_is_no_text_or_too_long_is_refused(tmp_path, monkeypatch):
    (tmp_path / "p.toml").write_bytes(os.urandom(5000))
    with pytest.raises(PolicyError):
        nr.Policy.load(tmp_path / "p.toml")
    monkeypatch.setattr("noren.policy.policy.MOST_BYTES", 100)
    (tmp_path / "p.toml").write_text("#" * 101)
    with pytest.raises(PolicyError, match="more than"):
        nr.Policy.load(tmp_path / "p.toml")


@pytest.mark.parametrize("method", ["mondrian", "anatomy", "incognito", "rating", "sweep", "auto", "hilbert", "decoys"])
def test_numbers_beyond_any_table_are_refused_by_every_method(method):
    for asked in ({"model": "frequency-l-diversity", "on": "s", "l": 10**30}, {"model": "k-anonymity", "k": 10**30}):
        with pytest.raises(PolicyError, match="whole number beyond"):
            nr.Policy(attributes={"q": "quasi-identifier", "s": "sensitive"}, require=[asked], method={"name": method})


FILES = {
    "binary": random.Random(1).randbytes(5000),
    "a cell of 200,000 letters": b"a;" + b"x" * 200_000 + b";*\n",
    "a quote left open": b'"a;b;*\n' * 30_000,
    "empty": b"",
    "blank": b"\n\n\n",
    "separators": b";;;;\n",
    "100,000 levels": b"a" + b";x" * 100_000 + b"\n",
}


@pytest.mark.parametrize("name", FILES)
def test_hostile_side_files_are_refused(name, tmp_path):
    path = tmp_path / "file.csv"
    path.write_bytes(FILES[name])
    with pytest.raises(HierarchyError):
        Hierarchy.read_csv(path)
    with pytest.raises(KnowledgeError):
        Knowledge.read_csv(path)
    table = pa.table({"s": ["a", "b"] * 5})
    for distance in ({"matrix": "file.csv"}, {"semilattice": "file.csv"}):
        policy = nr.Policy(
            attributes={"s": {"role": "sensitive", "distance": distance}},
            require=[{"model": "semantic-diversity", "on": "s", "l": 2, "d": 1}],
            base=tmp_path,
        )
        with pytest.raises(NorenError):
            nr.anonymize(table, policy)


def test_a_semilattice_that_runs_in_circles_is_refused(tmp_path):
    (tmp_path / "circle.csv").write_text("a,b\nb,a\n")
    policy = nr.Policy(
        attributes={"s": {"role": "sensitive", "distance": {"semilattice": "circle.csv"}}},
        require=[{"model": "semantic-diversity", "on": "s", "l": 2, "d": 1}],
        base=tmp_path,
    )
    with pytest.raises(PolicyError, match="its own ancestor"):
        nr.anonymize(pa.table({"s": ["a", "b"] * 5}), policy)


def test_side_files_have_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(hierarchy, "MOST_BYTES", 100)
    (tmp_path / "file.csv").write_text("a;b;*\n" * 100)
    with pytest.raises(HierarchyError, match="more than"):
        Hierarchy.read_csv(tmp_path / "file.csv")
    with pytest.raises(KnowledgeError, match="more than"):
        Knowledge.read_csv(tmp_path / "file.csv")


def test_a_repeated_value_is_found_in_one_pass(tmp_path):
    """A search that looks back from every line would take minutes for these."""
    many = [f"v{i}" for i in range(200_000)]
    with pytest.raises(HierarchyError, match="'v199999' is in more than one line"):
        Hierarchy(((*many, "v199999"),))
    with pytest.raises(KnowledgeError, match="listed twice"):
        Knowledge.from_sets([[0]], terms=[*many, "v199999"], labels=("a",))
