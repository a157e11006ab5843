"""The eight combinations of the paper's Table 12 and ours, on one table at one (l, d).

For many repetitions the sets come straight from the designs and the paper's estimates from how often each value occurs,
which is all they use; `release.estimate` gives the same numbers, with intervals.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.designs import SemanticDesign
from noren.errors import NorenError
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.estimators import equation_2
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import prepare
from noren.schema.hierarchy import Hierarchy
from noren.secret import Keystream
from noren.statements import SetCells
from noren_papers.base import Gain
from noren_papers.claims import error_of
from noren_papers.semantic.material import DEPTH, Codes, Counts, Material

DUPLICATE = ("N-Proposal", "N-Existing", "N-Simple", "N-Anonymity")
SIMPLE = ("Ex-Proposal", "Ex-Existing", "Ex-Simple")
LE = "LE"
OURS = "flat + likelihood (ours)"
ON_SIMPLE = "simple + likelihood (ours)"
"""The paper's own sets, read by the likelihood: what is the design's doing and what the estimator's."""
OUR_SERIES = (OURS, ON_SIMPLE)
PAPER_SERIES = (*DUPLICATE, *SIMPLE, LE)
SERIES = (*PAPER_SERIES, *OUR_SERIES)
WORST_CONDITION = 1e12


@dataclass(frozen=True)
class Point:
    """Error of one combination at one setting: mean over repetitions with its standard error, or why there is none."""

    series: str
    mse: float | None
    std_error: float | None
    repetitions: int
    status: str = ""


def mse(material: Material, estimate: Counts) -> float:
    """Equation 18: mean over all cells of the squared difference in relative frequency."""
    return float(np.square((estimate - material.truth) / material.records).mean())


def measure(
    material: Material, l: int, d: float, *, repetitions: int, ours: int, rng: np.random.Generator
) -> list[Point]:
    """Every combination, each on fresh decoys."""
    found: dict[str, list[float]] = {}
    why: dict[str, str] = {}
    for kind, names in (("duplicate-processing", DUPLICATE), ("simple", SIMPLE)):
        try:
            design = made(material, kind, l, d)
        except NorenError as error:
            why.update(dict.fromkeys(names, f"not possible: {short(error)}"))
            continue
        for _ in range(repetitions):
            estimates, reasons = paper_estimates(material, design, drawn(material, design), names)
            why.update(reasons)
            for name, estimate in estimates.items():
                found.setdefault(name, []).append(mse(material, estimate))
    for _ in range(repetitions):
        spread, why[LE] = le_estimate(material, l, d, rng)
        if spread is None:
            break
        found.setdefault(LE, []).append(mse(material, spread))
    for series, kind in ((OURS, "flat"), (ON_SIMPLE, "simple")):
        found[series], why[series] = _by_likelihood(material, kind, l, d, ours)
    return list(_points(found, why))


def _by_likelihood(material: Material, kind: str, l: int, d: float, times: int) -> tuple[list[float], str]:
    """Errors of the likelihood on sets of a design, or why there are none."""
    try:
        design = made(material, kind, l, d)
    except NorenError as error:
        return [], f"not possible: {short(error)}"
    if not design.compatibility.identifiable(l):
        return [], "counts are lost"
    fallen = "" if design.name == f"semantic-{kind}" else f"uniform-sets: the {kind} design does not exist here"
    return [mse(material, likelihood(material, design)) for _ in range(times)], fallen


def _points(found: dict[str, list[float]], why: dict[str, str]) -> Iterator[Point]:
    for name in SERIES:
        values = found.get(name, ())
        mean = float(np.mean(values)) if len(values) else None
        yield Point(name, mean, error_of(values), len(values), why.get(name, ""))


def made(material: Material, kind: str, l: int, d: float) -> Any:
    """The design of this kind. Raises where there is none."""
    return _made(kind, material.distances.tobytes(), material.size, l, d)


@lru_cache(maxsize=128)
def _made(kind: Any, distances: bytes, size: int, l: int, d: float) -> Any:
    return SemanticDesign.make(kind, np.frombuffer(distances).reshape(size, size), l, d)


def drawn(material: Material, design: Any) -> NDArray[Any]:
    """One published set a record, as rows of codes."""
    sets: NDArray[Any] = design.draw(material.codes, Keystream(), attribute="secret").codes(design.eta)
    return sets


def paper_estimates(
    material: Material, design: Any, sets: NDArray[Any], names: tuple[str, ...]
) -> tuple[dict[str, Counts], dict[str, str]]:
    """The paper's analyses of the same sets; instead of an inversion that has no answer, the reason."""
    l, F, omega = design.eta, material.size, material.counted(sets)
    records = omega.sum(axis=1, keepdims=True) / l
    q = (l - 1) / (F - 1)
    out: dict[str, Counts] = {}
    why: dict[str, str] = {}
    for name in names:
        analysis = name.split("-")[1]
        if analysis == "Simple":
            out[name] = omega / l
        elif analysis == "Anonymity":
            out[name] = omega
        elif analysis == "Existing":
            out[name] = (omega - q * records) / (1 - q)
        elif not design.compatibility.identifiable(l):
            why[name] = "counts are lost"
        else:
            matrix = equation_2(design)
            if np.linalg.cond(matrix) > WORST_CONDITION:
                why[name] = "equation 2 has no solution"
            else:
                out[name] = np.asarray(np.linalg.solve(matrix.T, omega.T).T, np.float64)
    return out, why


def likelihood(material: Material, design: Any) -> Counts:
    """Ours: the likelihood of whole sets, as `release.estimate` answers it."""
    exact = Axis.exact("slot", material.slots.astype(np.uint8), len(material.slot_labels))
    cells = SetCells.from_codes(material.size, drawn(material, design))
    return np.asarray(fit(prepare([exact, Axis.drawn("secret", cells, design)])).table, np.float64)


def le_estimate(material: Material, l: int, d: float, rng: np.random.Generator) -> tuple[Counts | None, str]:
    """(l, e)-diversity by Anatomy with the depth e at which values as far apart as d lie under different nodes."""
    if material.hierarchy is None:
        return None, "needs a tree"
    classes = subtrees(material.hierarchy, DEPTH + 1 - int(d))
    if int(classes.max()) + 1 < l:
        return None, "not possible: fewer subtrees than l"
    return grouped_estimate(material, classes, l, rng), ""


def short(error: NorenError) -> str:
    """The first clause of an error."""
    return str(error.message).split(":")[0].split(". ")[0].rstrip(".")


def sheet_of(rows: Iterable[tuple[Mapping[str, Any], Point]], *, status: bool = True) -> pl.DataFrame:
    """Errors as a sheet: a line for every combination, after what tells its place."""
    out = [
        {**place, "series": p.series, "mse": p.mse, "std_error": p.std_error, "repetitions": p.repetitions}
        | ({"status": p.status} if status else {})
        for place, p in rows
    ]
    return pl.DataFrame(out, schema_overrides={"mse": pl.Float64, "std_error": pl.Float64}, infer_schema_length=None)


def gains(
    sheet: pl.DataFrame, keys: Sequence[str], theirs: str | Sequence[str], reasons: Mapping[str, str], more: str = ""
) -> tuple[Gain, ...]:
    """Ours over the paper's combinations, place by place. reasons: why each of our series loses where it does."""
    return tuple(
        one
        for series, reason in reasons.items()
        for one in Gain.over(
            f"mean squared error, {series.removesuffix(' (ours)')}{more}", sheet, keys, series, theirs, "mse", reason
        )
    )


# ---------------------------------------------------------------- the rival: (l, e)-diversity by Anatomy
# Read as the paper says it: a group holds secrets of at least l different subtrees. The library's own method `anatomy`
# is stricter (no subtree may make up more than 1/l of a group) and refuses most l on Adult's schooling.


def subtrees(tree: Hierarchy, depth: int) -> Codes:
    """The number of the node at this depth above every leaf."""
    return np.asarray(tree.groups(tree.height - depth)[1], np.int64)


def groups_of(buckets: Codes, l: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Anatomy: one record from each of the l fullest buckets makes a group while l are left; the rest join any."""
    order = rng.permutation(len(buckets))
    order = order[np.argsort(buckets[order], kind="stable")]  # by bucket, by chance inside
    sizes = np.bincount(buckets)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    heap = [(-int(size), bucket) for bucket, size in enumerate(sizes) if size]
    heapq.heapify(heap)
    taken: list[int] = []
    while len(heap) >= l:
        fullest = [heapq.heappop(heap) for _ in range(l)]
        for left, bucket in fullest:
            taken.append(int(start[bucket] + sizes[bucket] + left))
            if left < -1:
                heapq.heappush(heap, (left + 1, bucket))
    count = len(taken) // l
    out = np.full(len(buckets), -1, np.int64)
    out[order[taken]] = np.arange(len(taken)) // l
    alone = out < 0
    out[alone] = rng.integers(0, count, int(alone.sum()))
    return out


def grouped_estimate(material: Material, classes: Codes, l: int, rng: np.random.Generator) -> Counts:
    """Every record of a group gets the group's mix of secrets: the simple analysis, for Anatomy."""
    group = groups_of(classes[material.codes], l, rng)
    count, slots = int(group.max()) + 1, len(material.slot_labels)
    secrets = np.bincount(group * material.size + material.codes, minlength=count * material.size).reshape(count, -1)
    people = np.bincount(group * slots + material.slots, minlength=count * slots).reshape(count, -1)
    return np.asarray((people / people.sum(axis=1, keepdims=True)).T @ secrets, np.float64)
