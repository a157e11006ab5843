"""The tables of the semantic-diversity paper: generated incomes, and Adult with survey weights or schooling as secret.

A histogram's cells are age class x gender x secret value; ages come in classes of ten years, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren import Policy
from noren.methods import Method
from noren.models import LEDiversity, Model, SemanticDiversity
from noren.schema.column import quasi_identifier, sensitive
from noren.schema.hierarchy import Hierarchy
from noren_papers.base import Bench
from noren_papers.datasets import generated

Counts = NDArray[np.float64]
Codes = NDArray[np.int64]

YEN = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30)
"""What an income class counts as, in millions of yen: its upper bound, and 30 for the open class."""
WEIGHT_STEP = 10_000
_LOW, _HIGH = "Without post-secondary", "Post-secondary"
SCHOOLING = (
    ("Preschool", _LOW),
    ("1st-4th", "Elementary", _LOW),
    ("5th-6th", "Elementary", _LOW),
    ("7th-8th", "Elementary", _LOW),
    ("9th", "Junior secondary", "Secondary", _LOW),
    ("10th", "Junior secondary", "Secondary", _LOW),
    ("11th", "Senior secondary", "Secondary", _LOW),
    ("12th", "Senior secondary", "Secondary", _LOW),
    ("HS-grad", "Senior secondary", "Secondary", _LOW),
    ("Some-college", _HIGH),
    ("Assoc-voc", "Assoc", _HIGH),
    ("Assoc-acdm", "Assoc", _HIGH),
    ("Bachelors", "University", _HIGH),
    ("Prof-school", "University", _HIGH),
    ("Masters", "Post grad", "University", _HIGH),
    ("Doctorate", "Post grad", "University", _HIGH),
)
"""The tree of schooling, leaf first, without its root: it has every node that the paper's text names."""
DEPTH = 4


@dataclass(frozen=True)
class Material:
    """One table, ready to be anonymised: who is in which cell of age and gender, and the secret value."""

    name: str
    codes: Codes
    slots: Codes
    slot_labels: tuple[tuple[str, str], ...]
    values: tuple[str, ...]
    distances: Counts
    hierarchy: Hierarchy | None = None

    @property
    def size(self) -> int:
        """The paper's F."""
        return len(self.values)

    @property
    def records(self) -> int:
        """The paper's N."""
        return len(self.codes)

    @cached_property
    def truth(self) -> Counts:
        """Records by slot and value."""
        return self.counted(self.codes[:, None])

    def counted(self, sets: NDArray[Any]) -> Counts:
        """How often each value occurs beside each combination of age and gender; a row of `sets` is a record's."""
        cells = self.slots[:, None] * self.size + sets
        shape = (len(self.slot_labels), self.size)
        return np.bincount(cells.ravel(), minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)

    def frame(self) -> pl.DataFrame:
        """The records as a table of three text columns."""
        ages, genders = (np.array(part) for part in zip(*self.slot_labels, strict=True))
        return pl.DataFrame(
            {
                "age": pl.Series(ages[self.slots]),
                "gender": pl.Series(genders[self.slots]),
                "secret": pl.Series(np.array(self.values)[self.codes]),
            }
        )


def rank_distances(size: int) -> Counts:
    """Distance as difference of ranks."""
    place = np.arange(size, dtype=float)
    return np.abs(place[:, None] - place)


def yen_distances() -> Counts:
    """Distance of two income classes in millions of yen."""
    place = np.array(YEN, float)
    return np.asarray(np.abs(place[:, None] - place))


def schooling_tree() -> Hierarchy:
    """The tree with every leaf at depth four: a short branch repeats its leaf, so an inner node keeps its depth."""
    rows = [(path[0],) * (DEPTH - len(path)) + (*path, "Any") for path in SCHOOLING]
    return Hierarchy(tuple(zip(*rows, strict=True)))


# ---------------------------------------------------------------- the three tables


def income(bench: Bench) -> Material:
    """100,000 generated records: incomes rise to the fifties and differ by gender, as salary surveys show."""

    def make() -> tuple[Material, Any]:
        frame = income_table(bench.pick(100_000, 4_000))
        labels = income_labels()
        made = _material(
            "income", frame, [labels.index(v) for v in frame["income"]], labels, rank_distances(len(labels))
        )
        return made, generated("income", frame, "generated for this experiment, like a salary survey")

    material, used = bench.shared("semantic income", make)
    bench.note(used)
    return material


def weights(bench: Bench) -> Material:
    """Adult's first 30,162 rows with fnlwgt in classes of 10,000 as the secret; in a quick run half as many classes,
    as work on a design grows with the third power of its values."""
    frame, (classes, step) = adult(bench), weight_classes(bench)

    def make() -> Material:
        labels = [f"{low}" for low in range(1, classes + 1)]
        codes = np.clip(frame["fnlwgt"].cast(pl.Int64).to_numpy() // step, 1, classes) - 1
        return _material("fnlwgt", frame, codes, labels, rank_distances(classes))

    return bench.shared("semantic fnlwgt", make)


def weight_classes(bench: Bench) -> tuple[int, int]:
    """How many classes fnlwgt has, and how wide they are: the paper's 148 in a full run."""
    return bench.pick((148, WEIGHT_STEP), (74, 2 * WEIGHT_STEP))


def education(bench: Bench) -> Material:
    """The same rows with schooling as the secret, its distance that of the tree."""
    frame = adult(bench)

    def make() -> Material:
        tree = schooling_tree()
        codes = [tree.leaves.index(value) for value in frame["education"]]
        return _material("education", frame, codes, tree.leaves, tree.lca_heights().astype(float), tree)

    return bench.shared("semantic education", make)


def adult(bench: Bench) -> pl.DataFrame:
    """The training part without missing cells: what the paper calls about 30,000 records."""
    return bench.table("adult", rows=bench.pick(30_162, 4_000))


def _material(
    name: str, frame: pl.DataFrame, codes: Any, values: Any, distances: Counts, tree: Hierarchy | None = None
) -> Material:
    decades = frame["age"].cast(pl.Int64).to_numpy() // 10
    women = (frame["sex"] == "Female").to_numpy()
    found, slots = np.unique(decades * 2 + women, return_inverse=True)
    labels = tuple((f"{code // 2 * 10}-{code // 2 * 10 + 9}", "female" if code % 2 else "male") for code in found)
    return Material(name, np.asarray(codes, np.int64), slots.astype(np.int64), labels, tuple(values), distances, tree)


def income_labels() -> list[str]:
    """Fourteen classes in millions of yen."""
    return [*(f"{low}-{high}" for low, high in zip((0, *YEN[:-2]), YEN[:-1], strict=True)), "25+"]


def income_table(records: int) -> pl.DataFrame:
    """Age, sex and income class; the same table for the same number of records."""
    rng = np.random.default_rng(20_200_003)
    age = rng.choice(np.arange(18, 75), records, p=_ages())
    woman = rng.random(records) < 0.43
    career = np.exp(-(((np.minimum(age, 68) - 53) / 24.0) ** 2))  # low at both ends, highest in the early fifties
    middle = np.where(woman, 2.3 + 0.7 * career, 2.4 + 3.3 * career)
    spread = np.where(woman, 0.62, 0.48)
    millions = middle * np.exp(spread * rng.standard_normal(records))
    place = np.searchsorted(np.array(YEN[:-1], float), millions, side="right")
    return pl.DataFrame(
        {
            "age": pl.Series(age.astype(str)),
            "sex": pl.Series(np.where(woman, "Female", "Male")),
            "income": pl.Series(np.array(income_labels())[place]),
        }
    )


def _ages() -> NDArray[np.float64]:
    """Employees by age: few below twenty, most in the forties, fewer past sixty."""
    age = np.arange(18, 75)
    shares = np.exp(-(((age - 45) / 17.0) ** 2)) * np.where(age < 22, 0.5, 1.0) * np.where(age > 64, 0.6, 1.0)
    return np.asarray(shares / shares.sum())


# ---------------------------------------------------------------- what is asked of them


def policy(table: Material, distance: str, model: Model, method: Method) -> Policy:
    """A policy for the table's three columns."""
    options: dict[str, Any] = {} if table.hierarchy is None else {"hierarchy": table.hierarchy}
    secret = sensitive(values=table.values, distance=distance, **options)
    people = {"age": quasi_identifier(), "gender": quasi_identifier()}
    return Policy(dependence={"most": 1.0}, attributes={**people, "secret": secret}, require=[model], method=method)


def diverse(l: int, d: float) -> Model:
    """(l, d)-semantic diversity of the secret, whatever a set betrays: the paper's designs promise no more."""
    return SemanticDiversity(on=("secret",), l=l, d=d, most=1.0)


def parted(l: int, e: int) -> Model:
    """(l, e)-diversity of the secret."""
    return LEDiversity(on=("secret",), l=l, e=e, most=1.0)
