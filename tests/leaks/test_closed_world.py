"""`verify` refuses by name whatever a manifest does not describe: a forger has fitted every checksum."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.release.package import checksum, manifest_digest

N = 60
TREE = "".join(f"{town};{land};*\n" for town, land in (("Ulm", "South"), ("Hof", "South"), ("Kiel", "North")))


@functools.cache
def people() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 80, N),
            "town": rng.choice(["Ulm", "Hof", "Kiel"], N),
            "ill": rng.choice(["Flu", "Cold", "Gout"], N),
        }
    )


def rules(folder: Path) -> nr.Policy:
    (folder / "towns.csv").write_text(TREE, encoding="utf-8")
    attributes = {
        "age": "quasi-identifier",
        "town": {"role": "quasi-identifier", "hierarchy": str(folder / "towns.csv")},
        "ill": "sensitive",
    }
    asked = [nr.models.KAnonymity(k=3), nr.models.DistinctLDiversity(on="ill", l=2)]
    return nr.Policy(attributes=attributes, require=asked, method="mondrian")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("made")
    out = {}
    for form in ("parquet", "csv"):
        nr.anonymize(people(), rules(folder), to=folder / form, file_format=form)
        out[form] = folder / form
    return out


@pytest.fixture
def release(made: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made["parquet"], tmp_path / "release"))


def mended(release: Path, change: Callable[[dict[str, Any]], Any] = lambda package: None) -> None:
    """Change the descriptor, and let every checksum in it fit again."""
    path = release / "datapackage.json"
    package = json.loads(path.read_text(encoding="utf-8"))
    change(package)
    for item in package["resources"]:
        file = release / item["path"]
        item.update(bytes=file.stat().st_size, hash=f"sha256:{checksum(file)}")
    page = release / "README.md"
    package["readme"].update(bytes=page.stat().st_size, hash=f"sha256:{checksum(page)}")
    block = package["noren"]
    block.pop("sha256", None)
    block["sha256"] = manifest_digest(block)
    path.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def rewritten(release: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    path = release / "data.parquet"
    table = change(pq.read_table(path))
    pq.write_table(table, path, compression="zstd", **{"store_schema": False, **options})
    mended(release)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_release_as_it_was_made_is_accepted(form: str, made: dict[str, Path], tmp_path: Path) -> None:
    assert nr.verify(made[form]).hold
    assert nr.verify(made[form], rules(tmp_path), original=people()).hold


@pytest.mark.parametrize("name", ["original.csv", ".hidden", "notes", "groups-1.parquet"])
def test_an_unknown_file_is_refused(name: str, release: Path) -> None:
    (release / name).write_text("Anna Miller, HIV\n")
    with pytest.raises(nr.errors.ReleaseError, match=f"holds '{name}', which its manifest does not describe"):
        nr.verify(release)


def test_an_unknown_directory_is_refused(release: Path) -> None:
    (release / "more").mkdir()
    with pytest.raises(nr.errors.ReleaseError, match="holds 'more'"):
        nr.verify(release)


def test_an_extra_column_is_refused(release: Path, made: dict[str, Path], tmp_path: Path) -> None:
    rewritten(release, lambda table: table.append_column("name", pa.array([f"Anna {i}" for i in range(len(table))])))
    with pytest.raises(nr.errors.ReleaseError, match="the column 'name', which its manifest does not describe"):
        nr.verify(release)
    plain = Path(shutil.copytree(made["csv"], tmp_path / "csv"))
    lines = (plain / "data.csv").read_text(encoding="utf-8").splitlines()
    (plain / "data.csv").write_text("\n".join(f'{line},"{"name" if not i else "x"}"' for i, line in enumerate(lines)))
    mended(plain)
    with pytest.raises(nr.errors.ReleaseError, match="the column 'name', which its manifest does not describe"):
        nr.verify(plain)


def test_columns_in_another_order_are_refused(release: Path) -> None:
    rewritten(release, lambda table: table.select(table.column_names[::-1]))
    with pytest.raises(nr.errors.ReleaseError, match="in its order"):
        nr.verify(release)


def test_the_schema_of_arrow_in_parquet_is_refused(release: Path) -> None:
    rewritten(release, lambda table: table.replace_schema_metadata({b"note": b"Anna"}), store_schema=True)
    with pytest.raises(nr.errors.ReleaseError, match="its metadata hold 'ARROW:schema', 'note'"):
        nr.verify(release)


def test_remarks_in_parquet_are_refused(release: Path) -> None:
    path = release / "data.parquet"
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"note": "Anna Miller"})
    mended(release)
    with pytest.raises(nr.errors.ReleaseError, match="its metadata hold 'note'"):
        nr.verify(release)


def test_statistics_that_no_cell_has_are_refused(release: Path) -> None:
    """The least and the largest text of a column stand in its metadata too, and in no page."""
    path = release / "data.parquet"
    raw = path.read_bytes()
    foot = int.from_bytes(raw[-8:-4], "little") + 8
    assert b"Cold" in raw[-foot:]
    path.write_bytes(raw[:-foot] + raw[-foot:].replace(b"Cold", b"Anna"))
    mended(release)
    with pytest.raises(nr.errors.ReleaseError, match="its statistics name values that its cells do not have"):
        nr.verify(release)


def test_bytes_between_the_pages_are_refused(release: Path) -> None:
    """The footer is found from the end of the file, so bytes before it are read by nobody."""
    path = release / "data.parquet"
    raw = path.read_bytes()
    foot = int.from_bytes(raw[-8:-4], "little") + 8
    path.write_bytes(raw[:-foot] + b"Anna Miller, HIV" + raw[-foot:])
    mended(release)
    with pytest.raises(nr.errors.ReleaseError, match="bytes that belong to no column"):
        nr.verify(release)


def test_a_text_that_stands_in_a_dictionary_alone_is_refused(release: Path) -> None:
    def hidden(table: pa.Table) -> pa.Table:
        known = [*table["ill"].unique().to_pylist(), "Anna Miller"]
        codes = pa.array([known.index(cell) for cell in table["ill"].to_pylist()], pa.int32())
        return table.set_column(2, "ill", pa.DictionaryArray.from_arrays(codes, pa.array(known)))

    rewritten(release, hidden)
    with pytest.raises(nr.errors.ReleaseError, match="'ill' holds a value that its published domain does not name"):
        nr.verify(release)


FIELDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "remark": lambda package: package.update(remark="Anna Miller"),
    "title": lambda package: package.update(title="Anna Miller"),
    r"resources\[0\].sources": lambda package: package["resources"][0].update(sources=["Anna Miller"]),
    r"resources\[0\].schema.fields\[0\].description": lambda package: package["resources"][0]["schema"]["fields"][
        0
    ].update(description="Anna Miller"),
    "readme.note": lambda package: package["readme"].update(note="Anna Miller"),
}


@pytest.mark.parametrize("place", FIELDS)
def test_a_field_or_text_of_the_descriptor_is_refused(place: str, release: Path) -> None:
    mended(release, FIELDS[place])
    with pytest.raises(nr.errors.ReleaseError, match=f"{place} is not what its manifest describes"):
        nr.verify(release)


def test_an_unknown_field_of_the_manifest_is_refused(release: Path) -> None:
    mended(release, lambda package: package["noren"].update(remark="Anna Miller"))
    with pytest.raises(nr.errors.ReleaseError, match="1 of its fields are not valid"):
        nr.verify(release)


def test_another_page_for_people_is_refused(release: Path) -> None:
    page = release / "README.md"
    page.write_text(page.read_text() + "\nAnna Miller has the flu.\n")
    mended(release)
    with pytest.raises(nr.errors.ReleaseError, match=r"README.md: changed or damaged: it says something else"):
        nr.verify(release)


# ---------------------------------------------------------------- general values that say something else


def entry(package: dict[str, Any], name: str) -> dict[str, Any]:
    return dict(next(column for column in package["noren"]["columns"] if column["name"] == name))


def replaced(package: dict[str, Any], name: str, new: dict[str, Any]) -> None:
    columns = package["noren"]["columns"]
    columns[[column["name"] for column in columns].index(name)] = new


def in_clear(release: Path, name: str, nodes: Callable[[int], Any]) -> None:
    """Publish a column as it stands in the original, and declare every value a node."""
    truth = people()[name].cast(pl.String).to_list()
    path = release / "data.parquet"
    table = pq.read_table(path)
    cells = [truth[i % len(truth)] for i in range(len(table))]
    pq.write_table(
        table.set_column(table.column_names.index(name), name, pa.array(cells)), path, compression="zstd",
        store_schema=False,
    )  # fmt: skip

    def change(package: dict[str, Any]) -> None:
        old = entry(package, name)
        d = len(old["values"]) or old["integers"][1] - old["integers"][0]
        old.pop("hierarchy", None)
        replaced(package, name, old | {"nodes": [[value, nodes(d)] for value in sorted(set(truth))]})

    mended(release, change)


def test_numbers_in_clear_declared_as_general_are_refused(release: Path) -> None:
    in_clear(release, "age", lambda d: [[0, d]])
    with pytest.raises(nr.errors.ReleaseError, match=r"column 'age': .* does not say what it is declared to cover"):
        nr.verify(release)


def test_texts_in_clear_declared_as_general_are_refused(release: Path) -> None:
    in_clear(release, "town", lambda d: [[0, d]])
    with pytest.raises(nr.errors.ReleaseError, match="column 'town': 'Hof', 'Kiel', 'Ulm' does not say"):
        nr.verify(release)


def test_nodes_that_cover_other_values_than_the_auditors_are_named(release: Path, tmp_path: Path) -> None:
    """The release tells another tree: by itself it is sound, and the policy's hierarchy says otherwise."""

    def change(package: dict[str, Any]) -> None:
        old = entry(package, "town")
        levels = [old["hierarchy"][0], ["South"] * len(old["values"]), ["*"] * len(old["values"])]
        levels[1][0] = "North"
        replaced(package, "town", old | {"hierarchy": levels})

    mended(release, change)
    found = nr.verify(release, rules(tmp_path))
    assert [(one.model, one.column) for one in found.failed if one.model == "published-nodes"] == [
        ("published-nodes", "town")
    ]


def test_a_foreign_row_that_tells_a_secret_is_judged(tmp_path: Path) -> None:
    rows = {"age": ["2*"] * 3 + ["*"], "town": ["South"] * 3 + ["*"], "ill": ["Flu", "Cold", "Gout", "HIV"]}
    pl.DataFrame(rows).write_csv(tmp_path / "table.csv")
    assert not nr.check(tmp_path / "table.csv", rules(tmp_path))
    rows["ill"][3] = "*"
    pl.DataFrame(rows).write_csv(tmp_path / "mute.csv")
    assert nr.check(tmp_path / "mute.csv", rules(tmp_path))
