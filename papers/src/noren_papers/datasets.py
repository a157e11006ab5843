"""The tables of the papers: where they lie in a data folder, how to know them, who publishes them, what stands in.

A folder is laid out by relative paths; a file may be packed (.gz) or not. Checksums are of the unpacked content.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from noren.errors import DataError, NorenError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Dataset:
    """One file. `publisher` is where its owners publish the original; `cleaning` what was done to it since."""

    name: str
    path: str
    title: str
    rows: int
    columns: int
    sha256: str
    publisher: str
    cleaning: str = ""
    papers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Used:
    """A table as a figure used it."""

    name: str
    origin: str
    rows: int
    columns: int
    sha256: str
    remark: str = ""


UCI = "https://archive.ics.uci.edu/dataset/"
ARX = "https://github.com/arx-deidentifier/arx (data/)"
_CLEANED = "header added"
_HIERARCHIES = {
    "age": (100, 5, "463f35372e8b1ad31fc624eb73c5da9297878a044ae5d61038eaf7b431ac55ca"),
    "education": (16, 4, "f22e5ee519c28b05538d4e5ddea0fbee5f0017fefb3abab3fa02272325bf9ce5"),
    "marital-status": (7, 3, "3e7ba2c4a5cd4fec059b4e3a2c57fce6e7c34a20daee1e624990ddd7beba85e5"),
    "native-country": (41, 3, "696d3b53973311c096b33f98bb56e526016910b1a1cd5a1e904cb799d1077023"),
    "occupation": (14, 3, "16dc420d5d7f8ab4d1e6144eb1d19ab8314ef42523fe8c4ee202372db1c98126"),
    "race": (5, 2, "df11abf41fa0669455adc9c9f9fa88663afa0cee8327684ecca861cd32dc4209"),
    "salary-class": (2, 2, "404895b3fcfb615813efab7ae0d2c50c8b127cec651f9b37d44a648646f86345"),
    "sex": (2, 2, "537d23f7b6969b916b5a5490eb1b32c273fefdc62ca050a7a813e23bbf3b78b2"),
    "workclass": (8, 3, "106f420349bf0071dbb25371795a78799edf24a64c3424619d563c3990ee8d02"),
}
_EVERY = ("sensitive-qids", "quasi-sensitive", "untouched-qids", "semantic", "tau-l")

DATASETS: tuple[Dataset, ...] = (
    Dataset(
        "adult", "adult.csv", "Adult", 45_222, 15,
        "1d674ecd338060e408105981c9490c791d956aaeba4d19c81b76af1da7128d64", UCI + "2/adult",
        "training then test part, rows with ? dropped, header added", _EVERY,
    ),
    *(
        Dataset(
            f"adult hierarchy {column}", f"adult_hierarchies/adult_hierarchy_{column}.csv",
            f"ARX's hierarchy of {column}", rows, columns, digest, ARX, "", ("tau-l", "semantic"),
        )
        for column, (rows, columns, digest) in _HIERARCHIES.items()
    ),
    Dataset(
        "census income", "census/census_income_kdd.csv", "Census-Income (KDD)", 299_285, 43,
        "d22bceffb4aa1a129b2da6be18d89d048a606e916b6204e9b20127429d3acb5a", UCI + "117/census-income-kdd",
        "both parts, split and header added, spaces stripped", ("untouched-qids", "sensitive-qids"),
    ),
    Dataset(
        "occupations", "census/census_kdd_occ_like.csv", "Census-Income cut to the attributes of OCC", 145_487, 10,
        "dff539cf83690963e3c042f47d81f879c1b392d5fb96a9666edf9889b1f11ca8", UCI + "117/census-income-kdd",
        "rows with a detailed occupation and a known country of birth", ("untouched-qids",),
    ),
    Dataset(
        "nursery", "uci/nursery.csv", "Nursery", 12_960, 9,
        "cfd50f92b8b65b8d398670ce13f1e78fbc0d452ff26906de8b4497f909716951", UCI + "76/nursery", _CLEANED, ("tau-l",),
    ),
    Dataset(
        "car", "uci/car.csv", "Car Evaluation", 1_728, 7,
        "0023b86e0dd3502aaa0e4a610ef4d8aebbba7ff40f53fa7c2f0543c68bee5114", UCI + "19/car+evaluation", _CLEANED,
        ("tau-l",),
    ),
    Dataset(
        "cmc", "uci/cmc.csv", "Contraceptive Method Choice", 1_473, 10,
        "0d3c4e3889d6e72b2ac0bd98a98ba5ec0c73337c1ae19e94a1507f66a5f357ba",
        UCI + "30/contraceptive+method+choice", _CLEANED, ("tau-l",),
    ),
    Dataset(
        "abalone", "uci/abalone.csv", "Abalone", 4_177, 9,
        "b36baf97dbcb1ae8d70ae95dd06794ce7878aef96cefc29cd0c8ca0fd9f8aee1", UCI + "1/abalone", _CLEANED, ("tau-l",),
    ),
    Dataset(
        "mushroom", "uci/mushroom.csv", "Mushroom", 8_124, 23,
        "7204d38399e2c7c84d85e7a2019081724bb943613e82be5d3523156cfbcf9f64", UCI + "73/mushroom", _CLEANED, ("tau-l",),
    ),
    Dataset(
        "chess", "uci/chess_krk.csv", "Chess (King-Rook vs. King)", 28_056, 7,
        "12a0f176699b382cde399d8a909111ad9fd983bd3ecd6c4671ed65c25481c3dc", UCI + "23/chess+king+rook+vs+king",
        _CLEANED, ("tau-l",),
    ),
    Dataset(
        "columbia", "health/columbia_disease_symptom_kb.csv", "Disease-Symptom Knowledge Base of Columbia University",
        1_854, 5, "4aa45cf967b54c834a94573b3f1a469551fec2376e89322190e6e99334b02f8b",
        "https://people.dbmi.columbia.edu/~friedma/Projects/DiseaseSymptomKB/index.html",
        "one row a pair, UMLS codes split from names, repeated pairs dropped", ("quasi-sensitive",),
    ),
    Dataset(
        "icd", "health/icd10cm_2026_tabular.csv", "Tabular list of ICD-10-CM, April 2026", 46_881, 7,
        "082645451c58eed397863a30291f90bc5dd6933770cea9e114d49a232c9860e6",
        "https://www.cdc.gov/nchs/icd/icd-10-cm/files.html",
        "one row a code with its parent, category, block and chapter; seventh characters not written out",
        ("semantic",),
    ),
)  # fmt: skip
"""Every file that a paper's experiments read."""

STAND_INS = {
    "adult": "noren_papers.standins.adult",
    "census income": "noren_papers.standins.income",
    "occupations": "noren_papers.standins.occupations",
    "nursery": "noren_papers.standins.uci",
    "car": "noren_papers.standins.uci",
    "cmc": "noren_papers.standins.uci",
    "abalone": "noren_papers.standins.uci",
    "mushroom": "noren_papers.standins.uci",
    "chess": "noren_papers.standins.uci",
    "columbia": "noren_papers.standins.symptoms",
    "icd": "noren_papers.standins.icd",
}
"""Each module has `make(name, rows)`: a generated table with the columns of the file and its shape, seeded."""

BY_NAME = {dataset.name: dataset for dataset in DATASETS}
EXACT, CHANGED, MISSING = "as published", "another version", "missing"


@dataclass(frozen=True)
class Found:
    """What lies in a folder where a data set should be."""

    dataset: Dataset
    state: str
    path: Path | None


def find(folder: Path | None, dataset: Dataset) -> Path | None:
    """The file in the folder, packed or not."""
    if folder is None:
        return None
    plain = folder / dataset.path
    return next((path for path in (plain, plain.with_name(plain.name + ".gz")) if path.is_file()), None)


def survey(folder: Path | None) -> list[Found]:
    """Every data set: as published, in another version, or missing."""
    out = []
    for dataset in DATASETS:
        path = find(folder, dataset)
        if path is None:
            out.append(Found(dataset, MISSING, None))
        else:
            out.append(Found(dataset, EXACT if digest_of(path) == dataset.sha256 else CHANGED, path))
    return out


def digest_of(path: Path) -> str:
    """The checksum of a file's unpacked content."""
    return hashlib.sha256(_unpacked(path)).hexdigest()


def check_folder(folder: Path | None) -> None:
    """A folder that was named must be there: a typing slip must not turn a reproduction into one on stand-ins."""
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"the data folder {folder} does not exist.",
            hint="Leave --data out to run on generated stand-ins; noren datasets tells what a folder holds.",
        )


def load(name: str, folder: Path | None, *, rows: int | None = None) -> tuple[pl.DataFrame, Used]:
    """A table with all columns as text, from the folder or else generated, and a note of which."""
    import polars as pl

    dataset = BY_NAME[name]
    path = find(folder, dataset)
    if path is None:
        make: Callable[[str, int], pl.DataFrame] = import_module(STAND_INS[name]).make
        frame = make(name, dataset.rows if rows is None else min(rows, dataset.rows))
        remark = f"{dataset.title} is not in the data folder" if folder is not None else "no data folder was given"
        return frame, generated(f"{name} (stand-in)", frame, remark)
    content = _unpacked(path)
    frame = pl.read_csv(io.BytesIO(content), infer_schema_length=0, n_rows=rows).fill_null("")
    digest = hashlib.sha256(content).hexdigest()
    remark = "" if digest == dataset.sha256 else "not the version that the reference figures were made with"
    origin = dataset.path if rows is None else f"{dataset.path}, first {rows:,} rows"
    return frame, Used(name, origin, frame.height, frame.width, digest, remark)


def generated(name: str, frame: pl.DataFrame, remark: str = "") -> Used:
    """A note of a table that a generator made; the checksum is of its CSV form."""
    digest = hashlib.sha256(frame.write_csv().encode()).hexdigest()
    return Used(name, "generated", frame.height, frame.width, digest, remark)


def adult_hierarchy(column: str, folder: Path | None) -> tuple[list[list[str]], Used]:
    """Rows of Adult's hierarchy of a column, leaf first, root last."""
    name = f"adult hierarchy {column}"
    dataset = BY_NAME[name]
    path = find(folder, dataset)
    if path is None:
        from noren_papers.standins.adult import hierarchy

        rows = hierarchy(column)
        text = "\n".join(";".join(row) for row in rows)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return rows, Used(f"{name} (stand-in)", "generated", len(rows), len(rows[0]), digest)
    content = _unpacked(path)
    rows = [line.split(";") for line in content.decode("utf-8-sig").splitlines() if line]
    return rows, Used(name, dataset.path, len(rows), len(rows[0]), hashlib.sha256(content).hexdigest())


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            return gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise NorenError(f"{path} is not a whole gzip file.", hint="Fetch it again.") from error
    return content
