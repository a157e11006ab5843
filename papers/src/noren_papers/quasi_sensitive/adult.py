"""Adult's records with generated terms: groups by generalisation, terms left out in them, and what both cost.

The methods are called as the pipeline calls them, on the pipeline's own coding of the table, but with a seeded order:
settings that differ in the requirement or in the search then work on the same groups, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren import Policy
from noren.engines import Plan
from noren.engines.records import priors
from noren.errors import RequirementNotMet
from noren.methods import Mondrian, Suppress
from noren.methods.base import ClassMethod
from noren.methods.suppress.beliefs import TermRequirement, estimated_prior, measure_groups
from noren.metrics.general import GeneralTable, view_of
from noren.metrics.losses import ncp_loss
from noren.metrics.term_losses import belief_change, term_loss
from noren.models import DistinctLDiversity, KAnonymity, Model, QSCloseness, QSDiversity
from noren.schema.column import quasi_identifier, quasi_sensitive, sensitive
from noren.statements import TermCells
from noren.workflow.losses import published_groups
from noren.workflow.prepare import prepare
from noren_papers.base import Bench
from noren_papers.claims import error_of
from noren_papers.quasi_sensitive.world import TERMS, World

QUASI = ("age", "education-num", "workclass", "marital-status", "occupation", "race", "sex", "native-country")
NUMBERS = ("age", "education-num")
SIGNS = "signs"
SIZES = (1, 2, 5, 10, 20)
"""The values of k; with k = 1 terms are removed and nothing is generalised."""
ONLY_GENERAL, ONLY_REMOVAL = "generalisation only", "k = 1, removal only"
RECORDS, QUICK_RECORDS = 3000, 250
PEAK = 1
"""Where `measure_groups` has the largest belief in one label."""
LONGEST = 13
"""Terms that the labels behind Adult's records have at least; each record has the paper's nine of them."""


@dataclass(frozen=True)
class Asked:
    """A requirement on terms, as the models and as the searches write it."""

    rule: TermRequirement

    @property
    def model(self) -> Model:
        if self.rule.kind == "cl":
            return QSDiversity(on=[SIGNS], c=self.rule.c, l=self.rule.l)
        return QSCloseness(on=[SIGNS], t=self.rule.t)


def diverse(c: float, l: int) -> Asked:
    return Asked(TermRequirement("cl", c=c, l=l))


def close(t: float) -> Asked:
    return Asked(TermRequirement("t", t=t))


def named(k: int) -> str:
    """The line of the paper's two phases."""
    return ONLY_REMOVAL if k == 1 else f"k = {k}"


def nodes_for(k: int) -> int:
    """Search nodes a group: larger groups need more of them for a first solution."""
    return max(4000, 2500 * k)


@dataclass(frozen=True)
class Point:
    """One release, measured against the original."""

    groups: int
    size: float
    """Average group: the paper's generalisation cost."""
    ncp: float
    cost: float
    """Mean over groups of equation 2: the paper's suppression cost."""
    cost_of_records: float
    share: float
    """Share of all terms that is left out."""
    rise: float
    """Mean over groups of the largest difference between posterior and prior belief: the paper's privacy."""
    rise_of_records: float
    highest: float
    belief: float
    """The largest posterior belief of all groups."""
    single: float
    """Share of groups with one record."""
    uneven: float
    """Mean over groups of the largest belief beside the mean belief in a label that fits; 1 where all are alike."""
    errors: Mapping[str, float]
    """Standard errors of the means over groups: rise, size and cost."""
    holds: bool
    """Whether every group satisfies the requirement, by other code than the search's."""
    view: GeneralTable
    terms: TermCells


EVEN_GROUPS = 200
"""Groups whose beliefs are looked at label by label."""


class Lab:
    """Adult with nine terms a record, coded once; secrets are further columns that existing models know how to hide."""

    def __init__(self, frame: pl.DataFrame, world: World, secrets: pl.DataFrame | None = None) -> None:
        self.world = world
        sets = np.sort(world.terms[: frame.height, :TERMS], axis=1)
        names = np.array(world.knowledge.terms, dtype=object)[sets]
        table = frame.select(
            pl.col(name).cast(pl.Int64) if name in NUMBERS else pl.col(name) for name in QUASI
        ).with_columns(pl.Series(SIGNS, names.tolist(), dtype=pl.List(pl.String)))
        attributes: dict[str, Any] = {name: quasi_identifier() for name in QUASI}
        attributes[SIGNS] = quasi_sensitive(knowledge=world.knowledge)
        require = [diverse(1.0, 30).model]
        if secrets is not None:
            require.append(DistinctLDiversity(l=2, on=secrets.columns))
            table = table.hstack(secrets)
            attributes.update({name: sensitive() for name in secrets.columns})
        policy = Policy(dependence={"most": 1.0}, attributes=attributes, require=require, method=Suppress())
        self.table = prepare(table.to_arrow(), policy).records
        self.alpha = np.asarray(priors(self.table)[SIGNS].shares)

    @cached_property
    def had(self) -> TermCells:
        return self.table.terms[SIGNS].cells

    def recoded(self, method: ClassMethod, asked: list[Model]) -> Plan:
        rng = np.random.default_rng(1)
        return method.recode(self.table, asked, rng.permutation)

    def measured(self, plan: Plan, rule: TermRequirement) -> Point:
        view = view_of(self.table, plan)
        left = plan.omitted.get(SIGNS, self.had)
        group = published_groups(view)
        knowledge = self.table.terms[SIGNS].knowledge
        loss = term_loss(self.had, left, group)
        change = belief_change(left, group, knowledge, self.alpha)
        return Point(
            groups=len(view.sizes),
            size=loss.average_group_size,
            ncp=ncp_loss(view),
            cost=loss.mean_over_groups,
            cost_of_records=loss.mean_over_records,
            share=loss.share,
            rise=change.mean_over_groups,
            rise_of_records=change.mean_over_records,
            highest=change.highest,
            belief=change.highest_belief,
            single=float((loss.records == 1).mean()),
            uneven=self._unevenness(left, group),
            errors={
                name: error_of(values) or 0.0
                for name, values in (("rise", change.rise), ("size", loss.records), ("cost", loss.cost))
            },
            holds=bool(rule.holds(self._measures(left, group, rule.l)).all()),
            view=view,
            terms=left,
        )

    def _unevenness(self, left: TermCells, group: NDArray[np.int64]) -> float:
        """From up to so many groups, each on its own, by the definition of a group's belief."""
        knowledge = self.table.terms[SIGNS].knowledge
        found = []
        for one in range(min(EVEN_GROUPS, int(group.max()) + 1)):
            members = np.flatnonzero(group == one)
            parts = [left.data[left.offsets[i] : left.offsets[i + 1]] for i in members]
            bounds = np.cumsum([0, *map(len, parts)])
            belief = estimated_prior(bounds, np.concatenate(parts).astype(np.int64), knowledge)
            if belief.any():
                found.append(float(belief.max() / belief[belief > 0].mean()))
        return float(np.mean(found)) if found else 1.0

    def peaks(self, plan: Plan) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The largest belief in one label of every group as published, and the records of each."""
        group = published_groups(view_of(self.table, plan))
        found = self._measures(plan.omitted.get(SIGNS, self.had), group, 2)
        return found[:, PEAK], np.bincount(group)

    def _measures(self, left: TermCells, group: NDArray[np.int64], l: int) -> NDArray[np.float64]:
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(int(group.max()) + 2))
        knowledge = self.table.terms[SIGNS].knowledge
        return measure_groups(order, bounds, left.offsets, left.data.astype(np.int64), knowledge, self.alpha, l=l)


def lab_of(bench: Bench) -> Lab:
    world = bench.shared("quasi-sensitive world of Adult", lambda: World(most=LONGEST))
    bench.note(world.used)
    frame = bench.table("adult", rows=bench.pick(RECORDS, QUICK_RECORDS))
    return bench.shared("quasi-sensitive lab", lambda: Lab(frame, world))


def two_phases(bench: Bench, asked: Asked, k: int, search: str) -> Point | None:
    """Groups of k by Mondrian, then terms left out; None where the requirement cannot be met."""
    method = Suppress(k=k, search=search, nodes=nodes_for(k))
    return _point(bench, asked, ("two phases", k, search), method)


def generalised(bench: Bench, asked: Asked) -> Point | None:
    """Mondrian under the requirement on terms itself: all terms stay."""
    return _point(bench, asked, ("generalisation only",), Mondrian())


def one_step(bench: Bench, asked: Asked, budget: float) -> Point | None:
    """Groups and terms chosen together, at most so much generalisation (NCP)."""
    method = Suppress(balance={"generalisation": round(budget, 6)}, nodes=bench.pick(2000, 500))
    return _point(bench, asked, ("one step", round(budget, 6)), method)


def untouched_terms(bench: Bench, asked: Asked, k: int) -> Point | None:
    """The groups of the first phase with all their terms, as k-anonymity alone would publish them."""
    lab = lab_of(bench)

    def make() -> Point | None:
        plan = Plan() if k == 1 else lab.recoded(Mondrian(), [KAnonymity(k=k)])
        return lab.measured(plan, asked.rule)

    return bench.shared(("quasi-sensitive point", "k-anonymity", k), make)


def _point(bench: Bench, asked: Asked, key: tuple[Any, ...], method: ClassMethod) -> Point | None:
    lab = lab_of(bench)

    def make() -> Point | None:
        try:
            return lab.measured(lab.recoded(method, [asked.model]), asked.rule)
        except RequirementNotMet:
            return None

    return bench.shared(("quasi-sensitive point", asked, *key), make)


def line(series: str, x: float, point: Point | None, **more: object) -> Mapping[str, object]:
    """A point as a line of a sheet; empty where the requirement could not be met."""
    names = (
        "rise", "size", "cost", "ncp", "rise_of_records", "highest", "belief", "cost_of_records", "share", "groups",
        "single", "uneven", "holds",
    )  # fmt: skip
    values = {name: None if point is None else getattr(point, name) for name in names}
    spread = {f"{name}_error": None if point is None else point.errors[name] for name in ("rise", "size", "cost")}
    return {"x": x, "series": series, **more, **values, **spread}
