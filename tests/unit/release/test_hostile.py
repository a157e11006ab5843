"""Releases that somebody made to hurt: each is refused with an error of the package, before it costs memory or time."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.errors import NorenError, ReleaseError
from noren.release import closed, set_tally
from noren.release.package import checksum, manifest_digest
from tests.unit.release.test_faults import TABLE, holder

WAYS = ("decoys", "anatomy", "terms")


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[tuple[str, str], Path]:
    out = {}
    for way in WAYS:
        folder = tmp_path_factory.mktemp(way)
        policy = holder(folder, way)
        for kind in ("parquet", "csv"):
            made = nr.anonymize(TABLE, policy, to=folder / kind, file_format=kind)
            out[way, kind] = made.path
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_tally, "LEAST_ROWS", 1)
        patch.setattr(set_tally, "ROWS_PER_SET", 1)
        folder = tmp_path_factory.mktemp("numbered")
        out["numbered", "parquet"] = nr.anonymize(TABLE, holder(folder, "decoys"), to=folder / "parquet").path
    assert (folder / "parquet" / "sets.parquet").exists()
    return out


def rewrite(release: Path, change: Callable[[dict[str, Any]], Any] | None = None) -> None:
    """A clever forger: after a change all checksums are made to fit."""
    path = release / "datapackage.json"
    package = json.loads(path.read_text(encoding="utf-8"))
    block = package["noren"]
    block.pop("sha256")
    if change is not None:
        change(block)
    package["noren"] = {**block, "sha256": manifest_digest(block)}
    for item in package["resources"]:
        file = release / item["path"]
        item |= {"bytes": file.stat().st_size, "hash": f"sha256:{checksum(file)}"}
    text = json.dumps(package, ensure_ascii=False, indent=1) + "\n"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")


def use(release: Path) -> None:
    """Everything that a recipient and an auditor do."""
    opened = nr.open_release(release)
    opened.frame()
    nr.verify(opened)
    for name in opened.columns[:2]:
        opened.estimate(name)


# ---------------------------------------------------------------- manifests

STRANGE = (
    None, 0, -1, 2**31, 2**63, 10**40, 1e308, "1e999", "", [], {}, "x", "../x", "\ud800", "\x00", [[]], [None], True,
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value[:6]) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*at, key))


def mutate(block: dict[str, Any], r: random.Random) -> None:
    for _ in range(r.choice((1, 1, 2, 3))):
        spot = r.choice([at for at in places(block) if at])
        owner: Any = block
        for key in spot[:-1]:
            owner = owner[key]
        roll = r.random()
        if roll < 0.6:
            owner[spot[-1]] = copy.deepcopy(r.choice(STRANGE))
        elif roll < 0.75:
            del owner[spot[-1]]
        elif roll < 0.9 and isinstance(owner, list):
            owner.append(copy.deepcopy(owner[spot[-1]]))
        elif type(owner[spot[-1]]) in (int, float):
            owner[spot[-1]] = owner[spot[-1]] * r.choice((-1, 2, 1000)) + r.choice((0, 1))


def test_no_change_of_a_manifest_ends_in_a_traceback(releases, tmp_path):
    refused = 0
    sources = list(releases.values())
    for seed in range(400):
        r = random.Random(seed)
        release = Path(shutil.copytree(r.choice(sources), tmp_path / str(seed)))
        rewrite(release, lambda block, r=r: mutate(block, r))
        try:
            use(release)
        except NorenError:
            refused += 1
        shutil.rmtree(release)
    assert 200 < refused < 400, "most changes matter, and some do not"


def test_no_damage_to_a_data_file_ends_in_a_traceback(releases, tmp_path):
    refused = 0
    sources = list(releases.values())
    for seed in range(300):
        r = random.Random(seed)
        release = Path(shutil.copytree(r.choice(sources), tmp_path / str(seed)))
        path = r.choice(sorted(file for file in release.iterdir() if file.suffix != ".json"))
        content = bytearray(path.read_bytes())
        for _ in range(r.choice((1, 2, 8))):
            content[r.randrange(len(content))] = r.randrange(256)
        path.write_bytes(content[: r.randrange(len(content))] if r.random() < 0.1 else content)
        rewrite(release)
        try:
            use(release)
        except NorenError:
            refused += 1
        shutil.rmtree(release)
    assert refused > 150


def test_a_writer_that_is_no_text_is_refused(releases, tmp_path):
    release = Path(shutil.copytree(releases["decoys", "parquet"], tmp_path / "release"))
    path = release / "data.parquet"
    content = path.read_bytes()
    at = content.rindex(b"parquet-cpp-arrow version ") + len(b"parquet-cpp-arrow version ")
    path.write_bytes(content[:at] + b"\xda" + content[at + 1 :])
    rewrite(release)
    with pytest.raises(ReleaseError):
        use(release)


def text_of(release: Path) -> str:
    return (release / "datapackage.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    {
        "deep": lambda text: text.replace('"noren":', '"deep": ' + "[" * 50_000 + "]" * 50_000 + ', "noren":', 1),
        "deep trees": lambda text: text.replace('"noren":', '"x": ' + '{"a":' * 9000 + "1" + "}" * 9000 + ', "noren":'),
        "a key twice": lambda text: text.replace('"records":', '"records": 1, "records":', 1),
        "another block": lambda text: text.replace('"noren":', '"noren": {}, "noren":', 1),
        "NaN": lambda text: text.replace('"records":', '"x": NaN, "records":', 1),
        "Infinity": lambda text: text.replace('"profile":', '"x": Infinity, "profile":', 1),
        "a number of 5,000 digits": lambda text: text.replace('"records":', f'"x": {"9" * 5000}, "records":', 1),
        "half a character": lambda text: text.replace('"profile":', '"x": "\\ud800", "profile":', 1),
        "no text": lambda text: "\x00" * 100,
    }.items(),
    ids=lambda change: change[0],
)  # fmt: skip
def test_a_descriptor_that_is_no_plain_json_is_refused(change, releases, tmp_path):
    release = Path(shutil.copytree(releases["decoys", "csv"], tmp_path / "release"))
    (release / "datapackage.json").write_text(change[1](text_of(release)), encoding="utf-8")
    with pytest.raises(ReleaseError, match="changed or damaged"):
        nr.open_release(release)


@pytest.mark.parametrize("depth", [100, 900, 5000])
def test_a_deep_manifest_with_a_fitting_checksum_does_no_harm(depth, releases, tmp_path):
    release = Path(shutil.copytree(releases["decoys", "csv"], tmp_path / "release"))
    block = json.loads(text_of(release))["noren"]
    del block["sha256"]
    whole, deep = json.dumps(block, sort_keys=True, separators=(",", ":")), "[" * depth + "]" * depth
    claimed = whole.replace('"name":"decoys"', f'"name":{deep}')
    assert deep in claimed
    digest = hashlib.sha256(claimed.encode()).hexdigest()
    package = json.loads(text_of(release)) | {"noren": "here"}
    text = json.dumps(package).replace('"here"', f'{{"sha256":"{digest}",{claimed[1:]}')
    (release / "datapackage.json").write_text(text, encoding="utf-8")
    with contextlib.suppress(NorenError):
        use(release)


def test_a_descriptor_of_hundreds_of_megabytes_is_not_read(releases, tmp_path, monkeypatch):
    release = Path(shutil.copytree(releases["decoys", "csv"], tmp_path / "release"))
    monkeypatch.setattr("noren.release.package.MOST_BYTES", 100)
    with pytest.raises(ReleaseError, match="changed or damaged"):
        nr.open_release(release)


@pytest.mark.parametrize("name", ["datapackage.json", "data.csv", "groups-1.csv"])
def test_links_are_not_followed(name, releases, tmp_path):
    release = Path(shutil.copytree(releases["anatomy", "csv"], tmp_path / "release"))
    (release / name).rename(tmp_path / "elsewhere")
    (release / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match="missing"):
        nr.open_release(release)


@pytest.mark.parametrize("path", ["../data.csv", "/etc/passwd", "groups-1.csv/../../x", "data.csv", "groups-2.csv", 7])
def test_a_side_table_elsewhere_is_refused(path, releases, tmp_path):
    release = Path(shutil.copytree(releases["anatomy", "csv"], tmp_path / "release"))
    package = json.loads(text_of(release))
    package["resources"][1]["path"] = path
    (release / "datapackage.json").write_text(json.dumps(package, indent=1) + "\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="lists a data file that no release has"):
        nr.open_release(release)


# ---------------------------------------------------------------- Parquet bombs


def test_a_file_of_more_rows_than_people_is_refused(releases, tmp_path):
    release = Path(shutil.copytree(releases["decoys", "parquet"], tmp_path / "release"))
    table = pq.read_table(release / "data.parquet")
    pq.write_table(pa.concat_tables([table] * 1000), release / "data.parquet", row_group_size=100)
    rewrite(release)
    with pytest.raises(ReleaseError, match="claims 60,000 rows, more than the manifest allows"):
        nr.open_release(release)


def test_a_small_file_of_millions_of_rows_is_refused(releases, tmp_path):
    """Five million equal rows take a few kilobytes, and the manifest agrees with them."""
    release = Path(shutil.copytree(releases["decoys", "parquet"], tmp_path / "release"))
    first = pq.read_table(release / "data.parquet").slice(0, 1)
    many = first.take(pa.array([0] * 500_000))
    pq.write_table(many, release / "data.parquet", row_group_size=500_000)
    assert (release / "data.parquet").stat().st_size < 20_000
    rewrite(release, lambda block: block.update(records=500_000))
    with pytest.raises(ReleaseError, match="a row group claims more than 65,536 rows"):
        nr.open_release(release)


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(releases, tmp_path, monkeypatch):
    monkeypatch.setattr(closed, "UNPACKED", 1 << 20)
    bomb = pa.table({"age": ["a" * 40_000_000]})
    release = Path(shutil.copytree(releases["anatomy", "parquet"], tmp_path / "release"))
    for name in ("data.parquet", "groups-1.parquet"):
        whole = (release / name).read_bytes()
        pq.write_table(bomb, release / name, compression="zstd", use_dictionary=False, write_statistics=False)
        rewrite(release)
        with pytest.raises(ReleaseError, match="claims to unpack to far more than its size"):
            nr.open_release(release)
        (release / name).write_bytes(whole)


def test_open_ended_bins_are_written_as_plain_json_and_open_again(tmp_path):
    policy = nr.Policy(
        attributes={"age": {"role": "sensitive", "bins": [0, 18, 65, float("inf")]}},
        require=[{"model": "frequency-l-diversity", "on": "age", "l": 2}],
    )
    nr.anonymize(pa.table({"age": [3, 20, 70, 999] * 5}), policy, to=tmp_path / "release")
    assert "Infinity," not in text_of(tmp_path / "release").replace('"Infinity"', "")
    assert nr.open_release(tmp_path / "release").column("age").domain.edges == (0, 18, 65, float("inf"))
