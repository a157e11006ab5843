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
from noren.release.package import checksum, manifest_digest, page_of, read_package

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
    with pytest.raises(nr.errors.ReleaseError, match=f"has '{name}', which its manifest does not describe"):
        nr.verify(release)


def test_an_unknown_directory_is_refused(release: Path) -> None:
    (release / "more").mkdir()
    with pytest.raises(nr.errors.ReleaseError, match="has 'more'"):
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
    with pytest.raises(nr.errors.ReleaseError, match="columns differ from those of the manifest"):
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
    with pytest.raises(nr.errors.ReleaseError, match=r"README.md: changed or damaged: it differs from the manifest"):
        nr.verify(release)


SPACES: dict[str, Callable[[str], str]] = {
    "blank lines at the end": lambda text: text + "\n" * 7,
    "a blank line inside": lambda text: text.replace("\n", "\n\n", 1),
    "a cell without quotes": lambda text: text.replace('"Flu"', "Flu", 1),
    "other ends of lines": lambda text: text.replace("\n", "\r\n", 3),
}


@pytest.mark.parametrize("what", SPACES)
def test_text_between_the_cells_of_csv_is_refused(what: str, made: dict[str, Path], tmp_path: Path) -> None:
    """A number of blank lines or a quote here and there tells whatever its writer likes."""
    release = Path(shutil.copytree(made["csv"], tmp_path / "release"))
    path = release / "data.csv"
    before = path.read_text(encoding="utf-8")
    path.write_bytes(SPACES[what](before).encode())
    assert path.read_text(encoding="utf-8") != before or b"\r" in path.read_bytes()
    mended(release)
    with pytest.raises(nr.errors.ReleaseError, match="its text differs from how these cells are written"):
        nr.verify(release)


def test_spaces_in_a_set_of_csv_are_refused(tmp_path: Path) -> None:
    asked = [nr.models.DistinctLDiversity(on="ill", l=2)]
    rules = nr.Policy(attributes={"ill": "sensitive"}, require=asked, method="decoys")
    nr.anonymize(people().select("ill"), rules, to=tmp_path / "release", file_format="csv")
    assert nr.verify(tmp_path / "release").hold
    path = tmp_path / "release" / "data.csv"
    head, first, rest = path.read_text(encoding="utf-8").split("\n", 2)
    path.write_text("\n".join([head, first.replace(",", ", "), rest]), encoding="utf-8")
    mended(tmp_path / "release")
    with pytest.raises(nr.errors.ReleaseError, match="its text differs from how these cells"):
        nr.verify(tmp_path / "release")


def test_spaces_in_the_descriptor_are_refused(release: Path) -> None:
    path = release / "datapackage.json"
    path.write_text(path.read_text(encoding="utf-8") + " \t \n", encoding="utf-8")
    with pytest.raises(nr.errors.ReleaseError, match="its spaces and line breaks differ from those of a release"):
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
        tight = {"tight": old.pop("tight")} if "tight" in old else {}  # which stands behind the nodes
        replaced(package, name, old | {"nodes": [[value, nodes(d)] for value in sorted(set(truth))]} | tight)

    mended(release, change)


def test_numbers_in_clear_declared_as_general_are_refused(release: Path) -> None:
    in_clear(release, "age", lambda d: [[0, d]])
    with pytest.raises(
        nr.errors.ReleaseError, match=r"column 'age': .* does not match the values that it is declared to cover"
    ):
        nr.verify(release)


def test_texts_in_clear_declared_as_general_are_refused(release: Path) -> None:
    in_clear(release, "town", lambda d: [[0, d]])
    with pytest.raises(nr.errors.ReleaseError, match="column 'town': the label 'Hof', 'Kiel', 'Ulm' does not match"):
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


def with_footer(release: Path, change: Callable[[bytes], bytes]) -> None:
    path = release / "data.parquet"
    raw = path.read_bytes()
    end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    foot = change(raw[end:-8])
    path.write_bytes(raw[:end] + foot + len(foot).to_bytes(4, "little") + b"PAR1")
    mended(release)


UNREAD: dict[str, Callable[[bytes], bytes]] = {
    "bytes after the last field": lambda foot: foot + b"Anna Miller, HIV",
    # compact Thrift: a text as field 100, before the byte that ends the structure
    "a field that no reader knows": lambda foot: foot[:-1] + b"\x08\xc8\x01\x10Anna Miller, HIV\x00",
}


@pytest.mark.parametrize("what", UNREAD)
def test_bytes_of_a_footer_that_readers_pass_over_are_refused(what: str, release: Path) -> None:
    before = pq.read_table(release / "data.parquet")
    with_footer(release, UNREAD[what])
    assert pq.read_table(release / "data.parquet").equals(before), "PyArrow minds neither"
    with pytest.raises(nr.errors.ReleaseError, match="its footer has bytes that this version"):
        nr.verify(release)


def test_a_page_and_words_of_another_version_are_compared_too(release: Path) -> None:
    """Nothing is taken on trust because a manifest says that another version wrote it."""
    page = release / "README.md"
    kept = page.read_text(encoding="utf-8")
    page.write_text(kept + "\nAnna Miller has the flu.\n", encoding="utf-8")
    mended(release, lambda package: package["noren"].update(noren="0.1.7"))
    with pytest.raises(nr.errors.ReleaseError, match="it differs from the manifest"):
        nr.verify(release)
    page.write_text(kept, encoding="utf-8")

    def reworded(package: dict[str, Any]) -> None:
        package["noren"].update(format=3, noren="0.2.0")
        package["resources"][0]["schema"]["fields"][0]["description"] = "Anna Miller"

    mended(release, reworded)
    with pytest.raises(nr.errors.ReleaseError, match="description is not what its manifest describes"):
        nr.verify(release)


WORDS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "version": (lambda block: block.update(noren="Anna Miller"), "1 of its fields are not valid"),
    "method": (lambda block: block["methods"][0].update(name="Anna Miller"), "a method that this version"),
    "chosen": (lambda block: block["methods"][0].update(chosen="mondrian + Anna"), "a method that this version"),
    "a method for columns": (lambda block: block["methods"][0].update(on=["Anna"]), "a method for columns"),
    "model": (lambda block: block["verdicts"][0].update(model="Anna Miller"), "verdicts on requirements"),
    "column": (lambda block: block["verdicts"][0].update(column="Anna Miller"), "verdicts on requirements"),
    "one more": (lambda block: block["verdicts"].append(block["verdicts"][0]), "verdicts on requirements"),
    "none": (lambda block: block["verdicts"].clear(), "verdicts on requirements"),
    "nobody is missing": (
        lambda block: block["verdicts"].append(block["verdicts"][0] | {"model": "left-out", "column": "all columns"}),
        "verdicts on requirements",
    ),
    "ground": (lambda block: block["verdicts"][0].update(basis="Anna Miller"), "a verdict on k-anonymity"),
    "achieved": (lambda block: block["verdicts"][0].update(achieved=500.0), "a verdict on k-anonymity"),
    "no figure": (lambda block: block["verdicts"][0].update(achieved=None), "a verdict on k-anonymity"),
    "required": (lambda block: block["verdicts"][1].update(required=9.0), "a verdict on distinct-l"),
    "fails": (lambda block: block["verdicts"][1].update(holds=False), "a verdict on distinct-l"),
}


@pytest.mark.parametrize("what", WORDS)
def test_claims_that_the_cells_do_not_show_are_refused(what: str, release: Path) -> None:
    """A manifest states what was verified and how the release was made: figures are compared, words are known ones."""
    change, why = WORDS[what]
    path = release / "datapackage.json"
    package = json.loads(path.read_text(encoding="utf-8"))
    change(package["noren"])
    mended(release, lambda described: described.update(package))
    page = release / "README.md"
    if what != "version":  # the page follows from the manifest
        manifest, _ = read_package(release)
        page.write_text(page_of(manifest, release / "data.parquet", False), encoding="utf-8")
        mended(release)
    with pytest.raises(nr.errors.ReleaseError, match=why):
        nr.verify(release)


def test_a_method_of_an_early_format_is_its_name(tmp_path: Path) -> None:
    """Fields of early manifests that are not carried along are no place for remarks either."""
    early = Path(__file__).parents[1] / "golden" / "format_1" / "mondrian" / "release"
    release = Path(shutil.copytree(early, tmp_path / "release"))
    assert nr.verify(release).hold
    path = release / "datapackage.json"
    package = json.loads(path.read_text(encoding="utf-8"))
    package["noren"]["method"]["note"] = "Anna Miller"
    package["noren"].pop("sha256")
    package["noren"]["sha256"] = manifest_digest(package["noren"])
    path.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    with pytest.raises(nr.errors.ReleaseError, match="not the descriptor of a release"):
        nr.verify(release)
