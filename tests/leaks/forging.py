"""Releases for forgers to start from, and ways to change one, with the page for people written again and every
checksum fitted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import noren as nr
from noren.errors import NorenError
from noren.release.manifest import PublishedMeaning
from noren.release.package import page_of, read_package
from noren.release.store import LEVEL
from tests.leaks.test_closed_world import entry, mended, replaced

N = 90
TREE = "Ulm;South;*\nHof;South;*\nMainz;South;*\nKiel;North;*\nBonn;North;*\nJena;North;*\n"
LINKS = """label,term,pair_weight
Flu,cough,0.9
Flu,fever,0.5
Cold,cough,0.6
Cold,rash,0.8
Gout,rash,0.9
Gout,fever,0.2
"""
ILLS = ("Flu", "Cold", "Gout")
Change = Callable[[Path], Any]
Block = dict[str, Any]


@functools.cache
def people() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 80, N),
            "town": rng.choice(["Ulm", "Hof", "Kiel"], N),
            "zip": rng.choice(["13021", "13023", "14850", "14853"], N),
            "ill": rng.choice(ILLS, N),
            "signs": rng.choice(["cough;fever", "rash", "cough", "fever;rash"], N),
        }
    )


def original(base: str) -> pl.DataFrame:
    """The columns of the original that a base release has."""
    columns = {"sets": ["town", "ill"], "groups": ["age", "ill"], "terms": ["age", "signs"], "means": ["age", "ill"]}
    return people().select(columns.get(base, ["age", "town", "zip", "ill"]))


def policy_of(base: str, folder: Path) -> nr.Policy:
    (folder / "towns.csv").write_text(TREE, encoding="utf-8")
    (folder / "links.csv").write_text(LINKS, encoding="utf-8")
    diverse, alike = nr.models.FrequencyLDiversity(on="ill", l=2), nr.models.KAnonymity(k=3)
    town: Any = {"role": "quasi-identifier", "hierarchy": str(folder / "towns.csv")}
    ill: Any = "sensitive"
    age: Any = "quasi-identifier"
    title = ""
    if base == "declared":
        title, age = "A study", {"role": "quasi-identifier", "bins": [20, 40, 60, 80]}
        ill = {"role": "sensitive", "values": [*ILLS, "Mumps"]}
    attributes: dict[str, Any] = {"age": age, "town": town, "ill": ill}
    attributes["zip"] = {"role": "quasi-identifier", "hierarchy": {"prefix": [3, 1]}}
    method: Any = "mondrian"
    asked: list[Any] = [alike, diverse]
    if base == "sets":
        attributes, asked, method = {"town": "plain", "ill": "sensitive"}, [diverse], "decoys"
    if base == "groups":
        attributes, asked, method = {"age": "quasi-identifier", "ill": "sensitive"}, [diverse], "anatomy"
    if base == "means":
        attributes, asked, method = (
            {"age": "quasi-identifier", "ill": "sensitive"},
            [alike, diverse],
            "microaggregation",
        )
    if base == "terms":
        signs = {"role": "quasi-sensitive", "knowledge": str(folder / "links.csv"), "separator": ";"}
        attributes = {"age": "quasi-identifier", "signs": signs}
        asked, method = [alike, nr.models.QSDiversity(on="signs", c=3, l=2)], "suppress"
    return nr.Policy(title=title, attributes=attributes, require=asked, method=method, dependence={"most": 1.0})


BASES = ("classes", "declared", "sets", "groups", "means", "terms", "csv")


def make_bases(folder: Path) -> Path:
    """One honest, signed release for every base, each beside its policy."""
    nr.SigningKey.create(folder / "holder.key")
    for base in BASES:
        place = folder / base
        place.mkdir()
        form = "csv" if base == "csv" else "parquet"
        made = nr.anonymize(original(base), policy_of(base, place))
        made.save(place / "release", form, sign=folder / "holder.key")
    return folder


# ---------------------------------------------------------------- what the forger's tools do


def refit(release: Path) -> None:
    """Write the page for people again, where the manifest can be read, and fit every checksum."""
    mended(release)
    try:
        manifest, _ = read_package(release)
        data = next(path for path in (release / "data.parquet", release / "data.csv") if path.exists())
        (release / "README.md").write_text(page_of(manifest, data, False), encoding="utf-8")
    except NorenError:
        return
    mended(release)


def block(change: Callable[[Block], Any]) -> Change:
    """Change the manifest."""

    def apply(release: Path) -> None:
        mended(release, lambda package: change(package["noren"]))
        refit(release)

    return apply


def package(change: Callable[[Block], Any]) -> Change:
    """Change the descriptor besides the manifest."""

    def apply(release: Path) -> None:
        refit(release)
        mended(release, change)

    return apply


def column(name: str, change: Callable[[Block], Any]) -> Change:
    """Change what the manifest says of a column; the fields of the descriptor follow, where they can be read."""

    def changed(manifest: Block) -> None:
        described = {"noren": manifest}
        old = entry(described, name)
        change(old)
        order = ["form", *PublishedMeaning.model_fields, *old]
        replaced(described, name, {key: old[key] for key in dict.fromkeys(order) if key in old})

    return block(changed)


def text(name: str, change: Callable[[bytes], bytes]) -> Change:
    """Change the bytes of a file."""

    def apply(release: Path) -> None:
        refit(release)
        path = release / name
        path.write_bytes(change(path.read_bytes()))
        if name != "datapackage.json":
            mended(release)

    return apply


def table(change: Callable[[pa.Table], pa.Table], name: str = "data", **options: Any) -> Change:
    """Write a Parquet file anew, changed."""

    def apply(release: Path) -> None:
        refit(release)
        path = release / f"{name}.parquet"
        made = change(pq.read_table(path))
        pq.write_table(
            made, path, **{"compression": "zstd", "compression_level": LEVEL, "store_schema": False, **options}
        )
        mended(release)

    return apply


def added(name: str) -> Change:
    """Put a file beside the others."""

    def apply(release: Path) -> None:
        refit(release)
        (release / name).write_text("Anna Miller, HIV\n", encoding="utf-8")

    return apply


def twins(change: Callable[[str], str]) -> Change:
    """Publish sets of a secret and its twin, which looks the same and is another text."""

    def apply(release: Path) -> None:
        other = people().select("town", ill=pl.Series([["HIV", change("HIV")][i % 2] for i in range(N)]))
        design = {"name": "uniform-decoys", "d": 2, "eta": 2, "p": 1.0}
        values = sorted(["HIV", change("HIV")])
        cells = pa.array([values] * N, pa.list_(pa.string()))

        def changed(manifest: Block) -> None:
            old = entry({"noren": manifest}, "ill")
            old.pop("sets", None)
            replaced({"noren": manifest}, "ill", old | {"values": values, "design": design})

        made = pq.read_table(release / "data.parquet")
        assert len(other) == len(made)
        made = made.set_column(made.column_names.index("ill"), "ill", cells)
        pq.write_table(made, release / "data.parquet", compression="zstd", store_schema=False)
        (release / "sets.parquet").unlink(missing_ok=True)

        def described(package: Block) -> None:
            changed(package["noren"])
            package["resources"] = package["resources"][:1]
            package["resources"][0]["schema"].pop("foreignKeys", None)
            package["resources"][0]["schema"]["fields"][-1] = {
                "name": "ill",
                "type": "array",
                "constraints": {"minLength": 2, "maxLength": 2, "required": True},
                "description": "A set of 2 possible values, in domain order.",
                "arrayItem": {"type": "string"},
            }

        mended(release, described)
        refit(release)

    return apply


def reordered(found: Mapping[str, Any]) -> Block:
    return dict(reversed(found.items()))


def replace_columns(manifest: Block) -> None:
    manifest["columns"][0] = reordered(manifest["columns"][0])


def stretched(end: int, **more: Any) -> Callable[[Block], Any]:
    """A domain of whole numbers that ends elsewhere; general values that leave everything open cover it all."""

    def change(old: Block) -> None:
        old["integers"] = [old["integers"][0], end]
        old.update(more)

    return change
