"""What lies in a release directory: no identifier, no key, no secret, and a manifest of nothing but the allow-list."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from tests.leaks.world import (
    IDENTIFIERS,
    ILLS,
    JOBS,
    TREE,
    WARDS,
    WAYS,
    everything,
    holder,
    make_release,
    people,
)


@pytest.mark.parametrize("way", WAYS)
def test_no_identifier_is_anywhere(way, tmp_path, monkeypatch):
    raw, text = everything(make_release(way, tmp_path, monkeypatch))
    table = people()
    values = {str(value) for name in IDENTIFIERS for value in table[name].to_pylist()} | {*IDENTIFIERS}
    assert len(values) == 2 * 600 + len(WARDS) + len(IDENTIFIERS)
    for value in values:
        assert value.encode() not in raw
        assert value.encode("utf-16-le") not in raw
        assert value not in text
    # the same search finds what is published, so it would have found the rest
    assert "01008" in text + raw.decode(errors="replace")
    assert b"Measles" in raw


@pytest.mark.parametrize("way", WAYS)
def test_no_name_of_the_holders_files_is_anywhere(way, tmp_path, monkeypatch):
    raw, text = everything(make_release(way, tmp_path, monkeypatch))
    for word in (str(tmp_path), "very-private-original", "unseen-policy", "hidden-tree", "deep-secret", ".register"):
        assert word.encode() not in raw
        assert word not in text


def test_no_secret_is_anywhere(tmp_path, monkeypatch):
    release = make_release("memoised", tmp_path, monkeypatch)
    raw, text = everything(release)
    path = tmp_path / "holder" / "deep-secret.key"
    secret = nr.Secret.load(path)
    key = bytes.fromhex(path.read_text().split()[1])
    derived = [secret.derive("record-keys"), *(secret.derive("attribute", name) for name in ("age", "job", "ill"))]
    for part in (key, *derived):
        forms = [part, part.hex().encode(), part.hex().upper().encode()]
        forms += [base64.b64encode(part).rstrip(b"="), base64.urlsafe_b64encode(part).rstrip(b"=")]
        for form in forms:
            assert form not in raw
            assert form.decode("latin-1") not in text
    assert secret.fingerprint.encode() not in raw
    assert json.loads((release / "datapackage.json").read_text())["noren"]["randomness"] == "memoised"


@pytest.mark.parametrize("way", WAYS)
def test_a_release_is_three_files_and_parquet_carries_no_remarks(way, tmp_path, monkeypatch):
    release = make_release(way, tmp_path, monkeypatch)
    data = "data.csv" if way == "csv" else "data.parquet"
    assert sorted(path.name for path in release.iterdir()) == ["README.md", data, "datapackage.json"]
    assert [path.name for path in release.parent.iterdir()] == ["release"]
    if way != "csv":
        metadata = pq.read_metadata(release / data)
        assert metadata.metadata is None
        assert metadata.created_by.startswith("parquet-cpp-arrow version")
        assert pq.read_schema(release / data).metadata is None
        assert pq.read_schema(release / data).names == ["row", "zip", "age", "job", "ill"]


def column(name: str, role: str, values: list[str], **more: object) -> dict:
    entry = {"name": name, "role": role, "form": "exact", "kind": "string", "values": values}
    return entry | {"domain_source": "data"} | more


def design(d: int, eta: int) -> dict:
    return {"name": "uniform-decoys", "d": d, "eta": eta, "p": 1.0}


def array_field(name: str, eta: int) -> dict:
    return {
        "name": name,
        "type": "array",
        "constraints": {"minLength": eta, "maxLength": eta, "required": True},
        "description": f"A set of {eta} possible values, in domain order.",
        "arrayItem": {"type": "string"},
    }


def expected_package(data: str, content: bytes, randomness: str) -> dict:
    """The whole descriptor, written down by hand: whatever else appears in it has not been allowed."""
    tree = [line.split(";") for line in TREE.splitlines()]
    bins = ["[0, 30)", "[30, 60)", "[60, 120]"]
    both = "sensitive-quasi-identifier"
    frequency = {"model": "frequency-l-diversity"}
    manifest = {
        "format": 5,
        "noren": nr.__version__,
        "title": "People",
        "records": 600,
        "suppressed": 0,
        "rows_are_people": True,
        "sample": None,
        "columns": [
            column("row", "plain", [str(i) for i in range(600)], kind="integer"),
            column("zip", "quasi-identifier", ["01001", "01008", "52701"]),
            column("age", both, bins, form="set", domain_source="bins", edges=[0, 30, 60, 120], design=design(3, 2)),
            column("job", both, [*JOBS], form="set", design=design(6, 2)),
            column(
                "ill",
                "sensitive",
                [*ILLS],
                form="set",
                hierarchy=[list(level) for level in zip(*tree, strict=True)],
                design=design(8, 3),
            ),
        ],
        "requirements": [{**frequency, "on": ["age", "job"], "l": 2}, {**frequency, "on": ["ill"], "l": 3}],
        "methods": [{"name": "decoys", "on": []}],
        "randomness": randomness,
        "verdicts": [
            {**frequency, "column": name, "required": n, "achieved": n, "holds": True, "basis": "the release alone"}
            for name, n in (("age", 2), ("job", 2), ("ill", 3))
        ],
    }
    return {
        "profile": "data-package",
        "name": "noren-release",
        "title": "People",
        "resources": [
            {
                "name": "data",
                "path": data,
                "format": data.split(".")[1],
                "mediatype": "text/csv" if data.endswith("csv") else "application/vnd.apache.parquet",
                "encoding": "utf-8",
                "bytes": len(content),
                "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
                "schema": {
                    "fields": [
                        {"name": "row", "type": "integer"},
                        {"name": "zip", "type": "string"},
                        array_field("age", 2),
                        array_field("job", 2),
                        array_field("ill", 3),
                    ]
                },
            }
        ],
        "noren": manifest,
    }


@pytest.mark.parametrize("way", WAYS)
def test_the_descriptor_is_exactly_the_allow_list(way, tmp_path, monkeypatch):
    release = make_release(way, tmp_path, monkeypatch)
    found = json.loads((release / "datapackage.json").read_text(encoding="utf-8"))
    page = (release / "README.md").read_bytes()
    listed = {"path": "README.md", "bytes": len(page), "hash": f"sha256:{hashlib.sha256(page).hexdigest()}"}
    assert found.pop("readme") == listed
    stated = found["noren"].pop("sha256")
    canonical = json.dumps(found["noren"], sort_keys=True, separators=(",", ":"))
    assert stated == hashlib.sha256(canonical.encode()).hexdigest()
    data = "data.csv" if way == "csv" else "data.parquet"
    randomness = "memoised" if way == "memoised" else "fresh"
    assert found == expected_package(data, (release / data).read_bytes(), randomness)


def test_the_manifest_does_not_depend_on_how_common_the_values_are(tmp_path):
    """Same people, same domains, but nearly everyone has another job and another illness."""
    table = people()
    rare = {"job": "Tutor", "ill": "Ulcer"}
    skewed = table
    for name, value in rare.items():
        kept = table[name].to_pylist()[:100] + [value] * 500
        assert set(kept) == set(table[name].to_pylist())
        skewed = skewed.set_column(table.column_names.index(name), name, pa.array(kept))
    blocks = []
    for number, original in enumerate((table, skewed)):
        data, policy = holder(tmp_path / str(number), original)
        policy.write_text(policy.read_text() + "\n[dependence]\nmost = 1.0\n")
        blocks.append(nr.anonymize(data, policy).manifest.model_dump(mode="json"))
    assert blocks[0] == blocks[1]


def test_a_figure_that_tells_about_the_exact_distribution_is_left_out(tmp_path):
    """Closeness beyond what the design proves is judged on the exact distribution: whether it holds is published, how
    closely is not."""
    policy = nr.Policy(
        attributes=dict.fromkeys(people().column_names, "identifier") | {"job": "sensitive"},
        require=[{"model": "t-closeness", "on": "job", "t": 0.25}],
        method={"name": "decoys", "parameters": {"job": {"eta": 5, "p": 0.7}}},
        people={"key": "insurance_no"},
    )
    nr.anonymize(people(), policy, to=tmp_path / "release")
    (verdict,) = json.loads((tmp_path / "release" / "datapackage.json").read_text())["noren"]["verdicts"]
    assert verdict == {
        "model": "t-closeness",
        "column": "job",
        "required": 0.25,
        "achieved": None,
        "holds": True,
        "basis": "the original",
    }


def test_a_release_in_memory_drags_nothing_of_the_original_along(tmp_path):
    data, policy = holder(tmp_path, memoised=True)
    release = nr.anonymize(data, policy)
    assert vars(release).keys() == {"manifest", "path", "records", "statements", "store", "suppressed", "title"}
    assert all(column.table is None and column.side is None for column in release.statements)
    kept = pickle.dumps(release)
    secret = (tmp_path / "deep-secret.key").read_text().split()[1]
    for value in [*people()["full name"].to_pylist(), *WARDS, str(tmp_path), secret, "very-private-original"]:
        assert value.encode() not in kept
    assert bytes.fromhex(secret) not in kept
    assert b"Measles" in kept
    sizes = {name: cells.sizes() for name, cells in release.cells(("age", "job", "ill")).items()}
    assert {name: {*size.tolist()} for name, size in sizes.items()} == {"age": {2}, "job": {2}, "ill": {3}}
