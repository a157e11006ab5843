"""Figures 8, 9 and 10: histograms of age, gender and secret value, through the whole pipeline, beside the original.

What the paper draws as landscapes is drawn as tiles: a row is an age class of one gender, a column a value. Drawn is
one release; what is said of it is judged by the mean over several, with its standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from noren import anonymize
from noren.errors import NorenError
from noren.methods import Anatomy, Decoys
from noren_papers import draw
from noren_papers.base import Bench, Result
from noren_papers.claims import ALMOST, SIMILAR, Answer, Claims, Mean, judged
from noren_papers.relations import Compare, Kind
from noren_papers.semantic import material as tables
from noren_papers.semantic.combinations import (
    DUPLICATE,
    LE,
    ON_SIMPLE,
    OUR_SERIES,
    OURS,
    PAPER_SERIES,
    SERIES,
    SIMPLE,
    gains,
    mse,
    short,
)
from noren_papers.semantic.material import DEPTH, Counts, Material, diverse, parted, policy

ORIGINAL = "original"
MANY, SOME, FEW = 40, 10, 2
"""Releases that claims are judged by: of a quick pipeline, of a slow one, and in a quick run."""
MEASURES = ("mse", "correlation", "misplaced", "unevenness")
ESTIMATORS = {"Proposal": "semantic-linear", "Existing": "uniform-linear", "Simple": "share"}
PROPOSALS = ("N-Proposal", "Ex-Proposal")
SMALLER, LONG = "(3,3) by rank", "(3,10)"
"""The settings at which a user's view is judged."""


def _of_all(similar_at: str = "") -> Claims:
    """What is said of all three tables, and of two of them what a user sees."""

    def than(
        one: str | tuple[str, ...], kind: Kind, other: float | tuple[str, ...], value: str, **more: Any
    ) -> Compare:
        return Compare(one, kind, other, value, ("setting",), error=f"{value} error", **more)

    said = Claims()
    said(
        "Of all combinations those with the proposed analysis come nearest to the original histogram.",
        than(PROPOSALS, "below", tuple(name for name in PAPER_SERIES if name not in PROPOSALS), "mse"),
    )
    said(
        "The simple analysis levels the histogram, so that peaks and gaps fade.",
        than(
            ("N-Simple", "Ex-Simple"), "below", 1 / (1 + SIMILAR), "unevenness",
            note="over the original's; levelled: below 80%, no longer alike",
        ),
    )  # fmt: skip
    said(
        "Under the proposed analysis the peaks and gaps stay as they were.",
        than(PROPOSALS, "alike", 1.0, "unevenness", note="over the original's"),
    )
    if similar_at:
        only: dict[str, Any] = {"where": pl.col("setting") == similar_at}
        said(
            "A user who gets the proposed release and analysis sees almost the true histogram.",
            than("N-Proposal", "above", 1 - ALMOST, "correlation", **only),
            than("N-Proposal", "below", ALMOST, "misplaced", **only, note=f"shares of the records, at {similar_at}"),
        )
    return said


SAID_8, SAID_9, SAID_10 = _of_all(SMALLER), _of_all(), _of_all(LONG)


@dataclass(frozen=True)
class Drawn:
    """One setting: every combination's histogram, or why there is none, release by release."""

    setting: str
    table: Material
    releases: tuple[dict[str, Counts], ...]
    status: dict[str, str]

    @property
    def found(self) -> dict[str, Counts]:
        """Those of the first release, which is drawn."""
        return self.releases[0]

    def mean(self, series: str, of: Callable[[Counts], float]) -> Mean:
        return Mean.of(of(found[series]) for found in self.releases)

    def similarity(self) -> list[dict[str, Any]]:
        """Error, correlation with the original, and how much of its unevenness is left: means over releases."""
        truth = self.table.truth
        measures: dict[str, Callable[[Counts], float]] = {
            "mse": partial(mse, self.table),
            "correlation": lambda cells: float(np.corrcoef(truth.ravel(), cells.ravel())[0, 1]),
            "misplaced": lambda cells: float(np.abs(cells - truth).sum() / 2 / self.table.records),
            "unevenness": lambda cells: unevenness(cells) / unevenness(truth),
        }
        rows = []
        for name in SERIES:
            row: dict[str, Any] = {"setting": self.setting, "series": name, "status": self.status.get(name, "")}
            for measure, of in measures.items():
                found = self.mean(name, of) if name in self.found else None
                row[measure] = None if found is None else found.value
                row[f"{measure} error"] = None if found is None else found.error
            rows.append(row)
        return rows


def unevenness(cells: Counts) -> float:
    """Standard deviation over the values of each age and gender, in shares of the table: 0 for level ground."""
    shares = cells / cells.sum()
    return float(np.sqrt(np.square(shares - shares.mean(axis=1, keepdims=True)).mean()))


def histograms(table: Material, l: int, d: int, setting: str, distance: str = "ordinal", *, releases: int = 1) -> Drawn:
    """All combinations of Table 12 and ours, over some releases."""
    found, status = zip(*(_once(table, l, d, distance) for _ in range(releases)), strict=True)
    return Drawn(setting, table, found, status[-1])


def _once(table: Material, l: int, d: int, distance: str) -> tuple[dict[str, Counts], dict[str, str]]:
    """One release of each combination, by `anonymize` and `release.estimate`."""
    found: dict[str, Counts] = {}
    status: dict[str, str] = {}
    kinds: tuple[tuple[Any, tuple[str, ...]], ...]
    kinds = (("duplicate-processing", DUPLICATE), ("simple", (*SIMPLE, ON_SIMPLE)), ("flat", (OURS,)))
    for design, names in kinds:
        try:
            release = anonymize(table.frame(), policy(table, distance, diverse(l, d), Decoys(design=design)))
        except NorenError as error:
            status.update(dict.fromkeys(names, f"not possible: {_reason(error)}"))
            continue
        for name in names:
            if name == "N-Anonymity":  # the published counts, of which the simple analysis takes one in l
                found[name] = found["N-Simple"] * l
                continue
            estimator = "likelihood" if name in OUR_SERIES else ESTIMATORS[name.split("-")[1]]
            answer = release.estimate(["age", "gender", "secret"], estimator=estimator)
            found[name] = _cells(table, answer.frame)
        used = release.designs["secret"].name
        if used != f"semantic-{design}":
            status.update(dict.fromkeys(names, f"{used.removeprefix('semantic-')}: {design} does not exist here"))
    if table.hierarchy is None:
        status[LE] = "not possible: needs a tree"
    else:
        try:
            release = anonymize(table.frame(), policy(table, distance, parted(l, DEPTH + 1 - d), Anatomy()))
            # Table 12 gives Anatomy the simple analysis; the library's default would be the likelihood
            found[LE] = _cells(table, release.estimate(["age", "gender", "secret"], estimator="spread").frame)
        except NorenError as error:
            status[LE] = f"not possible: {_reason(error)}"
    return found, status


def _reason(error: NorenError) -> str:
    problems = getattr(error, "problems", None)
    return str(problems[0].message).split(": ")[0].rstrip(".") if problems else short(error)


def _cells(table: Material, frame: pl.DataFrame) -> Counts:
    """An estimate's frame as slots by values."""
    slots = pl.DataFrame(
        {"age": [a for a, _ in table.slot_labels], "gender": [g for _, g in table.slot_labels],
         "slot": range(len(table.slot_labels))}
    )  # fmt: skip
    codes = pl.DataFrame({"secret": list(table.values), "code": range(table.size)})
    joined = frame.join(slots, on=["age", "gender"]).join(codes, on="secret")
    out = np.zeros((len(table.slot_labels), table.size))
    out[joined["slot"].to_numpy(), joined["code"].to_numpy()] = joined["count"].to_numpy()
    return out


# ---------------------------------------------------------------- the figures


@SAID_8("The 14 income classes can be anonymised to (3,7)-semantic diversity.")
def _feasible(settings: list[Drawn]) -> Answer:
    by_rank, by_yen = settings[-1], settings[1]
    return judged(
        [any(name in one.found for name in (*DUPLICATE, *SIMPLE)) for one in (by_rank, by_yen)],
        f"by rank: {by_rank.status.get('Ex-Proposal', 'possible')}; with distances in millions of yen (1 to 10, 15, "
        f"20, 25, 30) the simple algorithm {'can' if 'Ex-Proposal' in by_yen.found else 'cannot'}; "
        f"duplicate-processing: {by_yen.status.get('N-Proposal', 'possible')}",
    )


def figure_8(bench: Bench) -> Result:
    table = tables.income(bench)
    yen = replace(table, values=tuple(map(str, tables.YEN)), distances=tables.yen_distances())
    releases = FEW if bench.quick else MANY
    by_rank = histograms(table, 3, 7, "(3,7) by rank")
    by_yen = histograms(yen, 3, 7, "(3,7) in millions of yen", "numeric", releases=releases)
    smaller = histograms(table, 3, 3, SMALLER, releases=releases)
    notes = (
        "(3,7) is impossible by rank on 14 classes (3 x 7 > 14). Drawn are (3,7) with distances in millions of yen, "
        "where duplicate-processing is not defined, and (3,3) by rank, the largest d at which it exists for l = 3.",
        "In yen one window narrower than 7 holds seven of the 14 values: the flat design does not exist there and "
        "uniform-sets takes its place.",
    )
    return _figure("8", "income", SAID_8, [smaller, by_yen], notes, [by_rank])


def _far(settings: list[Drawn]) -> dict[str, int]:
    """The distance of every schooling from Doctorate."""
    table = settings[0].table
    return dict(zip(table.values, map(int, table.distances[table.values.index("Doctorate")]), strict=True))


@SAID_9("Masters is at distance 1 from Doctorate, Prof-school and Bachelors at distance 2.")
def _distances(settings: list[Drawn]) -> Answer:
    far = _far(settings)
    return judged(
        [far["Masters"] == 1, far["Prof-school"] == 2, far["Bachelors"] == 2],
        f"in the tree Masters is at {far['Masters']}, Prof-school at {far['Prof-school']}, Bachelors at "
        f"{far['Bachelors']}",
    )


@SAID_9(
    "For (3,2) the decoys of Doctorate come from Assoc, Some-college, Secondary or another category outside University."
)
def _partners(settings: list[Drawn]) -> Answer:
    allowed = [value for value, distance in _far(settings).items() if distance >= 2]
    inside = [value for value in ("Prof-school", "Bachelors") if value in allowed]
    named = ("Assoc-voc", "Assoc-acdm", "Some-college", "9th", "10th", "11th", "12th", "HS-grad")
    return judged(
        [all(value in allowed for value in named), not inside],
        f"{len(allowed)} values are at distance 2 or more, those named among them; "
        + (f"{' and '.join(inside)}, at distance 2, are allowed too" if inside else "none of University is"),
    )


def figure_9(bench: Bench) -> Result:
    one = histograms(tables.education(bench), 2, 3, "(2,3)", "tree", releases=FEW if bench.quick else MANY)
    notes = (
        "Duplicate-processing is for ordered values, so its four combinations are left out, as in the paper.",
        "LE is analysed by the estimator spread, the simple analysis that the paper gives it.",
        f"LE is the library's own method anatomy with le-diversity l = 2, e = {DEPTH - 2}: values at distance 3 part "
        "at that depth.",
    )
    return _figure("9", "Adult, education", SAID_9, [one], notes)


def figure_10(bench: Bench) -> Result:
    one = histograms(tables.weights(bench), 3, 10, LONG, releases=FEW if bench.quick else SOME)
    classes, step = tables.weight_classes(bench)
    notes = (
        f"fnlwgt falls into {classes} classes of {step:,}. Drawn are the classes that hold 99.5% of the records, two "
        "to a tile; the sheet has all of them.",
    )
    return _figure("10", "Adult, fnlwgt", SAID_10, [one], notes)


def _figure(
    number: str, name: str, said: Claims, settings: list[Drawn], notes: tuple[str, ...], refused: Sequence[Drawn] = ()
) -> Result:
    similarity = pl.DataFrame(
        [row for one in (*settings, *refused) for row in one.similarity()],
        schema_overrides=dict.fromkeys([f"{m}{e}" for m in MEASURES for e in ("", " error")], pl.Float64),
        infer_schema_length=None,
    )
    sheet = pl.concat([_long(one) for one in settings])
    extra = {"" if i == 0 else f"{i + 1}": _picture(one, f"Figure {number}. Histograms, {name}, {one.setting}")
             for i, one in enumerate(settings)}  # fmt: skip
    table = settings[0].table
    return Result(
        sheets={"": sheet, "similarity": similarity},
        pictures=extra,
        answers=said.answered(frame=similarity, settings=[*settings, *refused]),
        ours_series=OUR_SERIES,
        parameters={
            "records": table.records,
            "F": table.size,
            "settings (l,d)": [one.setting for one in (*settings, *refused)],
            "QIDs": "age by decade, gender",
            "releases": len(settings[0].releases),
        },
        notes=(
            *notes,
            "Every histogram drawn is one release of the whole pipeline and its release.estimate by age, gender and "
            "value; N-Anonymity is the published counts as they are. Similarity is the mean squared error of "
            "equation 18; unevenness the standard deviation over an age and gender's values, over the original's; "
            "both are means over several releases, which the claims are judged by.",
            "Tiles are cut at zero and at the largest count of the original.",
        ),
        gains=gains(similarity, ("setting",), PAPER_SERIES, {OURS: "flat sets tell less than simple ones"}),
    )


def _long(one: Drawn) -> pl.DataFrame:
    cells = {ORIGINAL: one.table.truth, **{n: one.found[n] for n in SERIES if n in one.found}}
    slots, F = len(one.table.slot_labels), one.table.size
    base = pl.DataFrame(
        {
            "age": np.repeat([age for age, _ in one.table.slot_labels], F),
            "gender": np.repeat([gender for _, gender in one.table.slot_labels], F),
            "value": list(one.table.values) * slots,
        }
    )
    return pl.concat(
        base.select(setting=pl.lit(one.setting), series=pl.lit(name), age="age", gender="gender", value="value",
                    count=pl.Series(found.ravel()))
        for name, found in cells.items()
    )  # fmt: skip


def _picture(one: Drawn, title: str) -> Any:
    table = one.table
    order = np.argsort([gender for _, gender in table.slot_labels], kind="stable")
    cells = {ORIGINAL: table.truth, **{n: one.found[n] for n in SERIES if n in one.found}}
    values, wide = list(table.values), table.size > 40
    if wide:  # too many for tiles: the long empty tail goes, and neighbours share a tile
        last = int(np.searchsorted(np.cumsum(table.truth.sum(axis=0)), 0.995 * table.records)) // 2 * 2 + 2
        values = [f"{values[i]}-{values[i + 1]}" for i in range(0, last, 2)]
        cells = {name: found[:, :last].reshape(len(found), -1, 2).sum(axis=2) for name, found in cells.items()}
    top = cells[ORIGINAL].max()
    rows = [
        {"panel": name, "people": f"{table.slot_labels[s][1]} {table.slot_labels[s][0]}", "value": value,
         "count": float(np.clip(found[s, j], 0, top))}
        for name, found in cells.items() for s in order for j, value in enumerate(values)
    ]  # fmt: skip
    return draw.tiles(
        pl.DataFrame(rows), x="value", y="people", value="count", panel="panel", columns=3, title=title,
        x_title="value", y_title="", value_title="records", labels=False, cell=(9, 9) if wide else (17, 11),
        note="Cut at zero and at the original's largest count.",
    )  # fmt: skip
