"""The tables of the paper, coded and with hierarchies: Adult, Nursery and the smaller UCI sets of its Table 1.

Adult has the published ARX hierarchies. The paper draws no hierarchy of the other sets, so theirs are made here: one or
two levels by what the values mean, widths for numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.engines import Records
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren_papers.base import Bench

Inner = Mapping[str, tuple[str, ...]]
"""General value -> the base values under it; the root is above all of them."""


@dataclass(frozen=True)
class Source:
    """Where a data set comes from and which of its columns take part."""

    table: str
    title: str
    quasi: tuple[str, ...]
    sensitive: str
    trees: Mapping[str, Inner | tuple[float, ...]]
    """Inner nodes, or interval widths for numbers; a column that is not named hangs flat under a root."""


@dataclass(frozen=True)
class Prepared:
    """A data set as every method of this paper sees it."""

    name: str
    title: str
    frame: pl.DataFrame
    """The columns that take part, as text."""
    quasi_identifiers: tuple[str, ...]
    sensitive: str
    hierarchies: Mapping[str, Hierarchy]
    """Of every quasi-identifier and of the sensitive column."""
    coded: Records
    """The same rows as codes into the leaves of the hierarchies."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often every base value of the sensitive column occurs."""
        return self.counts_of(self.sensitive)

    @property
    def values(self) -> int:
        """Base values of the sensitive column that occur."""
        return int((self.counts > 0).sum())

    def counts_of(self, name: str) -> NDArray[np.int64]:
        """How often every base value of a column occurs."""
        return np.bincount(self.coded.codes[name], minlength=self.coded.columns[name].d)


ADULT = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
NURSERY = ("parents", "has_nurs", "form", "children", "housing", "finance", "social", "health")

SOURCES: dict[str, Source] = {
    "adult": Source("adult", "Adult", ADULT, "occupation", {}),
    "adult-salary": Source("adult", "Adult (salary)", ADULT, "salary-class", {}),
    "nursery": Source(
        "nursery",
        "Nursery",
        NURSERY,
        "class",
        {
            "parents": {"ordinary": ("usual",), "demanding": ("pretentious", "great_pret")},
            "has_nurs": {"good enough": ("proper", "less_proper"), "not good": ("improper", "critical", "very_crit")},
            "form": {"own family": ("complete", "completed"), "other family": ("incomplete", "foster")},
            "children": {"1-2": ("1", "2"), "3 or more": ("3", "more")},
            "class": {
                "refused": ("not_recom",),
                "accepted": ("recommend", "very_recom"),
                "with priority": ("priority", "spec_prior"),
            },
        },
    ),
    "car": Source(
        "car",
        "Car Evaluation",
        ("buying", "maint", "doors", "persons", "lug_boot", "safety"),
        "class",
        {
            "buying": {"dear": ("vhigh", "high"), "cheap": ("med", "low")},
            "maint": {"dear": ("vhigh", "high"), "cheap": ("med", "low")},
            "doors": {"2-3": ("2", "3"), "4 or more": ("4", "5more")},
            "class": {"acceptable": ("acc", "good", "vgood"), "not acceptable": ("unacc",)},
        },
    ),
    "cmc": Source(
        "cmc",
        "Contraception",
        ("wife_age", "wife_education", "husband_education", "n_children", "wife_religion", "wife_working",
         "husband_occupation", "standard_of_living", "media_exposure"),
        "contraceptive_method",
        {
            "wife_age": (5, 10, 20),
            "n_children": (2, 4),
            "wife_education": {"lower": ("1", "2"), "higher": ("3", "4")},
            "husband_education": {"lower": ("1", "2"), "higher": ("3", "4")},
            "standard_of_living": {"lower": ("1", "2"), "higher": ("3", "4")},
            "contraceptive_method": {"none": ("1",), "some": ("2", "3")},
        },
    ),
    "mushroom": Source(
        "mushroom",
        "Mushroom",
        ("cap-shape", "cap-surface", "cap-color", "bruises", "odor", "gill-size", "population", "habitat"),
        "class",
        {},
    ),
    "chess": Source(
        "chess",
        "Chess (King-Rook vs. King)",
        ("wk_file", "wk_rank", "wr_file", "wr_rank", "bk_file", "bk_rank"),
        "depth_of_win",
        {
            **{f"{man}_file": {"queen's side": tuple("abcd"), "king's side": tuple("efgh")} for man in ("wr", "bk")},
            **{f"{man}_rank": {"1-4": tuple("1234"), "5-8": tuple("5678")} for man in ("wr", "bk")},
            "depth_of_win": {
                "no win": ("draw",),
                "up to 5": ("zero", "one", "two", "three", "four", "five"),
                "6 to 10": ("six", "seven", "eight", "nine", "ten"),
                "11 to 16": ("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
            },
        },
    ),
    "abalone": Source(
        "abalone",
        "Abalone",
        ("sex", "length", "diameter", "height"),
        "rings",
        {"length": (0.05, 0.1, 0.2), "diameter": (0.05, 0.1, 0.2), "height": (0.05, 0.1, 0.2), "rings": (5, 10)},
    ),
}  # fmt: skip
QUICK_ROWS = 3_000


def touch(bench: Bench, name: str) -> None:
    """Note for the figure at hand what a data set was read from; reading it again costs nothing."""
    source = SOURCES[name]
    whole = source.table == "adult"
    bench.table(source.table, rows=bench.pick(None, QUICK_ROWS) if whole else None)
    for column in (*source.quasi, source.sensitive) if whole else ():
        bench.hierarchy_rows(column)


def prepared(bench: Bench, name: str) -> Prepared:
    """Load a data set, take a part of it in a quick run, and code it."""
    import polars as pl

    from noren.schema.column import quasi_identifier, sensitive

    source = SOURCES[name]
    whole = source.table == "adult"
    frame = bench.table(source.table, rows=bench.pick(None, QUICK_ROWS) if whole else None)
    frame = frame.select([*source.quasi, source.sensitive])
    if not whole and bench.quick and frame.height > QUICK_ROWS:
        frame = frame[part_with_all_values(frame[source.sensitive], QUICK_ROWS, np.random.default_rng(QUICK_ROWS))]
    trees = {
        column: adult_tree(bench, column, frame[column].unique().to_list())
        if whole
        else tree_for(frame[column].unique().to_list(), source.trees.get(column))
        for column in (*source.quasi, source.sensitive)
    }
    trees[source.sensitive] = over_occurring(trees[source.sensitive], frame[source.sensitive])
    columns, codes = {}, {}
    for column, tree in trees.items():
        code = frame[column].replace_strict(list(tree.leaves), range(len(tree.leaves)), return_dtype=pl.Int64)
        codes[column] = code.to_numpy()
        meant = sensitive(hierarchy=tree) if column == source.sensitive else quasi_identifier(hierarchy=tree)
        columns[column] = meant.over(column, Domain(tree.leaves))
    coded = Records(frame.height, columns, codes)
    return Prepared(name, source.title, frame, source.quasi, source.sensitive, trees, coded)


def part_with_all_values(secrets: pl.Series, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Random rows with the shares of the sensitive values kept, two of each at least where there are two: a rare value
    must not vanish, and chance must not change what the table is eligible for."""
    values = secrets.to_numpy()
    taken = []
    for value in np.unique(values):
        where = np.flatnonzero(values == value)
        size = min(len(where), max(2, len(where) * rows // len(values)))
        taken.append(rng.permutation(where)[:size])
    return np.sort(np.concatenate(taken))


def adult_tree(bench: Bench, column: str, values: list[str]) -> Hierarchy:
    """ARX's hierarchy, as it is: leaves that nobody has stay, as in the published figures."""
    tree = Hierarchy.from_rows(bench.hierarchy_rows(column))
    strange = tree.missing(values)
    return tree if not strange else tree.restrict_to([*tree.leaves, *strange])


def over_occurring(tree: Hierarchy, column: pl.Series) -> Hierarchy:
    """The tree over the values that occur: a secret that nobody has does not count for (tau, l)."""
    found = set(column.unique().to_list())
    return tree.restrict_to([leaf for leaf in tree.leaves if leaf in found])


def tree_for(values: list[str], shape: Inner | tuple[float, ...] | None) -> Hierarchy:
    """A hierarchy over the values that occur: flat, by inner nodes, or by widths."""
    if isinstance(shape, tuple):
        return Hierarchy.from_widths(sorted(values, key=float), shape)
    ranked = sorted(values, key=_rank)
    if shape is None:
        return Hierarchy.from_rows([[value, "*"] for value in ranked])
    parent = {value: node for node, under in shape.items() for value in under}
    place = list(parent)
    ranked.sort(key=lambda value: place.index(value) if value in parent else len(place))
    return Hierarchy.from_rows([[value, parent.get(value, value), "*"] for value in ranked])


def _rank(value: str) -> tuple[Any, ...]:
    return (0, float(value), value) if value.replace(".", "", 1).isdigit() else (1, 0.0, value)
