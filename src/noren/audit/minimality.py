"""The minimality attack (Wong, Fu, Wang and Pei, 2007): a class that is larger than k demands has a reason.

The adversary knows the method, that it generalises no more than it must, and everybody's quasi-identifiers. Where k
alone would have cut a published class further, the requirement on the sensitive column must have stood in the way, and
that says something about who has which value.

What is supposed about the method: it cuts each class on its own, wherever all parts meet all requirements (local
cuts, as Mondrian's). The parts are those that Mondrian makes inside the class for k alone. Mondrian itself would have
refused every cut and not only these, so the attack uses a part of what the refusal says. For methods that recode the
whole domain at once, or that move records between classes afterwards, it is an approximation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.bounds import LEVEL, mean_bounds
from noren.audit.cover import Finder
from noren.audit.cutting import Cut, Learned, learn
from noren.audit.people import People, known_people
from noren.audit.rivals import repeatable
from noren.audit.told import class_keys, find_people, key_names, searchable
from noren.cells import Statement
from noren.errors import QueryError
from noren.methods.mondrian import Mondrian
from noren.models import MODELS, KAnonymity
from noren.models.base import Model
from noren.models.class_check import ClassModel
from noren.release.release import Release
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.table import Records

LOCAL = ("mondrian",)
TITLES = {"mean_belief": "mean belief", "max_belief": "largest belief", "above_half": "above 1/2", "gains": "gain"}
TRUTH_TITLES = {"right": "right guess"}


@dataclass(frozen=True)
class Guarded:
    """A sensitive column that a requirement protects by classes."""

    statement: Statement
    models: Sequence[ClassModel]
    k: int


class Minimality(Attack):
    """Read in the size of a class why it was not cut."""

    adversary: ClassVar[str] = (
        "knows the method and its requirements, that it generalises no more than necessary, and the exact "
        "quasi-identifiers of everybody in the table"
    )
    success: ClassVar[str] = (
        "the largest belief in one sensitive value of a person, and the classes in which it rises above the share "
        "that the class itself publishes"
    )

    name: Literal["minimality"] = "minimality"
    draws: int = Field(default=200, ge=20, le=100_000, description="Ways to hand out values that are simulated.")
    k: int | None = Field(default=None, ge=2, description="The k that alone would decide; by default as published.")

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Why there is nothing to attack; None if there is."""
        if any(one.is_class for one in release.statements):
            return "groups leave quasi-identifiers as they are, and nothing is generalised as little as possible"
        if release.designs and not any(one.nodes is not None for one in release.statements):
            return "decoys are drawn for each record alone, and nothing is generalised as little as possible"
        if not _targets(release, None):
            return "no requirement on an exactly published sensitive column decides how large classes are"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        release = case.release
        if (reason := self.applies(release)) is not None:
            raise QueryError(f"the minimality attack does not apply to this release: {reason}.")
        searchable(release)
        people = None if case.original is None else known_people(case)
        out = []
        targets = _targets(release, self.k)
        with case.stage("Looking for cuts", len(targets)) as progress:
            for target in targets:
                out.append(self._outside(release, target) if people is None else self._inside(release, target, people))
                progress(1)
        return out

    # ------------------------------------------------------------------ outsider

    def _outside(self, release: Release, target: Guarded) -> AttackResult:
        """Without people: how much a cut of k records off every class large enough would tell, were it the reason."""
        row_class, values = _classes(release), _values(release, target.statement.name)
        size = np.bincount(row_class)[row_class]
        order = np.argsort(row_class, kind="stable")
        order = order[size[order] >= 2 * target.k]
        belief, before = _top_shares(row_class, values, target.statement.d)
        settled, gains = np.zeros(len(row_class), bool), np.zeros(len(row_class), bool)
        error = np.zeros(len(row_class))
        found, cut = None, None
        if len(order):
            of = np.unique(row_class[order], return_inverse=True)[1].reshape(-1)
            first = np.searchsorted(of, of)
            cut = Cut(of, 2 * of + (np.arange(len(of)) - first >= target.k), values[order], target.statement.d)
            found = learn(cut, target.models, target.statement, _overall(values, target.statement.d), self.draws)
            small = 2 * of
            belief[order] = np.maximum(found.belief[small], before[order])
            settled[order], gains[order] = found.settled[small], found.gains[small]
            error[order] = found.error[small]
        rows = np.arange(1, len(row_class) + 1)
        plain = _scenario("classes", "the classes alone", "row", rows, before, before, None, False)
        extra = {"settled": settled, "gains": gains}
        told = _scenario(
            "at-most",
            f"if {target.k} records had been cut off",
            "row",
            rows,
            belief,
            before,
            (row_class, error),
            False,
            extra,
        )
        facts = self._facts(release, target, row_class, found, cut)
        note = (
            "an outsider does not know how a class would have been cut: the figures suppose that k records would have "
            "been cut off and that the person is one of them, which tells most"
        )
        return self._result(target, values, (plain, told), facts, [note], None)

    # ------------------------------------------------------------------ holder

    def _inside(self, release: Release, target: Guarded, people: People) -> AttackResult:
        """The original's people, cut inside their published classes by Mondrian for k alone."""
        values = _values(release, target.statement.name)
        finder, codes = find_people(release, people, searchable(release))
        mine, known = _membership(finder, codes, people.n)
        row_class = finder.class_of
        shares = _share_table(row_class, values, target.statement.d)
        truth = people.published(target.statement)
        found_class = mine >= 0
        before = np.where(
            found_class, shares.max(axis=1)[np.maximum(mine, 0)], _overall(values, target.statement.d).max()
        )
        belief, error = before.copy(), np.zeros(people.n)
        guess = np.where(found_class, shares.argmax(axis=1)[np.maximum(mine, 0)], -1)
        plain_guess, settled, gains = guess.copy(), np.zeros(people.n, bool), np.zeros(people.n, bool)
        truth_belief = np.where(found_class & (truth >= 0), shares[np.maximum(mine, 0), np.maximum(truth, 0)], 0.0)
        truth_before = truth_belief.copy()
        found, cut, who = self._cut(people, target, mine, known, row_class, values)
        if found is not None and cut is not None:
            part = cut.part
            belief[who], error[who], guess[who] = found.belief[part], found.error[part], found.top[part]
            settled[who], gains[who] = found.settled[part], found.gains[part]
            truth_belief[who] = found.posterior[part, np.maximum(truth[who], 0)]
        right = {"right": (guess == truth).astype(float), "truth_belief": truth_belief}
        extra = {"settled": settled, "gains": gains, "class_known": known[np.maximum(mine, 0)] & found_class}
        plain_extra = {"right": (plain_guess == truth).astype(float), "truth_belief": truth_before}
        rows = people.rows
        plain = _scenario("classes", "the classes alone", "person", rows, before, before, None, True, plain_extra)
        title, errors = "with minimality", (np.maximum(mine, 0), error)
        told = _scenario("minimality", title, "person", rows, belief, before, errors, True, extra | right)
        facts = self._facts(release, target, row_class, found, cut)
        facts["classes_with_known_members"] = int(known.sum())
        notes = (
            []
            if known.all()
            else [f"{int((~known).sum()):,} classes overlap others, so that nobody knows whom they hold"]
        )
        return self._result(target, values, (plain, told), facts, notes, truth)

    def _cut(
        self, people: People, target: Guarded, mine: NDArray, known: NDArray, row_class: NDArray, values: NDArray
    ) -> tuple[Learned | None, Cut | None, NDArray[np.int64]]:
        """The people of classes that k alone would have cut, class by class, and what follows."""
        who = np.flatnonzero((mine >= 0) & known[np.maximum(mine, 0)])
        if not len(who):
            return None, None, who
        parts = _parts(people.records, who, mine[who], target.k)
        pure = _several(mine[who], parts)
        who, parts = who[pure], parts[pure]
        if not len(who):
            return None, None, who
        order = np.argsort(mine[who], kind="stable")
        who, parts = who[order], parts[order]
        classes, of = np.unique(mine[who], return_inverse=True)
        rows = np.flatnonzero(np.isin(row_class, classes))
        rows = rows[np.argsort(row_class[rows], kind="stable")]
        part = np.unique(parts, return_inverse=True)[1].reshape(-1)
        cut = Cut(of.reshape(-1), part, values[rows], target.statement.d)
        overall = _overall(values, target.statement.d)
        return learn(cut, target.models, target.statement, overall, self.draws), cut, who

    # ------------------------------------------------------------------ result

    def _facts(
        self, release: Release, target: Guarded, row_class: NDArray, found: Learned | None, cut: Cut | None
    ) -> dict[str, Any]:
        classes = int(row_class.max(initial=-1)) + 1
        out: dict[str, Any] = {"classes": classes, "k": target.k, "draws": self.draws}
        out |= {"method": _recoder(release, target.statement.name), "cut_by_k_alone": 0 if cut is None else cut.classes}
        out["requirements"] = [model.model for model in target.models]
        if found is None or cut is None:
            return out | {"gaining_classes": 0, "undecided_classes": 0}
        gaining, unsettled = np.unique(cut.owner[found.gains]), np.unique(cut.owner[~found.settled])
        return out | {"gaining_classes": len(gaining), "undecided_classes": len(unsettled)}

    def _result(
        self,
        target: Guarded,
        values: NDArray,
        scenarios: tuple[Scenario, ...],
        facts: dict[str, Any],
        notes: Sequence[str],
        truth: NDArray | None,
    ) -> AttackResult:
        overall = _overall(values, target.statement.d)
        peak = float(overall.max())
        baseline = {"mean_belief": peak, "max_belief": peak, "above_half": float(peak > 0.5), "gains": 0.0}
        if truth is not None:
            baseline |= {"right": float((truth == overall.argmax()).mean())}
        told = [
            f"{facts['gaining_classes']:,} of {facts['classes']:,} classes give something away; k = {facts['k']} alone "
            f"would have cut {facts['cut_by_k_alone']:,}",
            f"bounds are {LEVEL:.0%}, of the simulation of {self.draws} draws",
        ]
        if facts["undecided_classes"]:
            told.append(f"{facts['undecided_classes']:,} classes are undecided: hardly any draw breaks the requirement")
        if facts["method"] not in LOCAL:
            told.append(f"the method {facts['method']!r} does not cut class by class: an approximation")
        return AttackResult(
            attack=self.name,
            target=(target.statement.name,),
            adversary=self.adversary,
            success=self.success,
            baseline=baseline,
            scenarios=scenarios,
            titles=TITLES | (TRUTH_TITLES if truth is not None else {}),
            measure="belief",
            shares=("above_half", "mean_belief", "gains", *(("right",) if truth is not None else ())),
            facts=facts,
            notes=(*told, *notes),
        )


def _targets(release: Release, k: int | None) -> list[Guarded]:
    """The exactly published sensitive columns with a requirement on classes besides k."""
    asked: list[Model] = [MODELS[str(one["model"])].model_validate(one) for one in release.manifest.requirements]
    least = k or max([2, *(model.least_class_size for model in asked)])
    out = []
    for one in release.statements:
        models = [model for model in asked if isinstance(model, ClassModel) and one.name in model.on]
        models = [model for model in models if model.about == "columns"]
        if one.is_exact and not one.column.is_open and one.role.needs_requirement and models:
            out.append(Guarded(one, models, least))
    return out


def _recoder(release: Release, name: str) -> str | None:
    """The method that formed the classes of a column: the first that speaks of it, or of a quasi-identifier."""
    keys = {name, *key_names(release, name)[0]}
    return next((one.name for one in release.manifest.methods if not one.on or keys & set(one.on)), None)


def _scenario(
    name: str,
    title: str,
    by: Any,
    rows: NDArray,
    belief: NDArray,
    before: NDArray,
    errors: tuple[NDArray, NDArray] | None,
    holder_only: bool,
    extra: dict[str, NDArray] | None = None,
) -> Scenario:
    import polars as pl

    more = extra or {}
    frame = pl.DataFrame({"record": rows, "belief": belief, "before": before} | more)
    n = max(1, len(belief))
    summary = {
        "mean_belief": float(belief.sum() / n),
        "max_belief": float(belief.max(initial=0.0)),
        "above_half": float((belief > 0.5 + 1e-9).sum() / n),
        "mean_rise": float((belief - before).sum() / n),
        "gains": float(more["gains"].mean()) if "gains" in more else 0.0,
    }
    if "right" in more:
        summary |= {"right": float(more["right"].mean()), "mean_truth_belief": float(more["truth_belief"].mean())}
    bounds = {}
    if errors is not None:
        # the lines of one class share its draws, so their errors add up; classes are simulated independently
        by_class = np.bincount(errors[0], errors[1])
        bounds["mean_belief"] = mean_bounds(summary["mean_belief"], float(np.sqrt((by_class**2).sum()) / n))
    return Scenario(name, title, by, summary, frame, holder_only, bounds)


# ---------------------------------------------------------------------- classes and parts


def _values(release: Release, name: str) -> NDArray[np.int64]:
    return np.asarray(release.column(name).key(release.cells([name])[name]), np.int64)


def _classes(release: Release) -> NDArray[np.int64]:
    """The class of every published row: rows with equal quasi-identifiers."""
    keys = class_keys(release, searchable(release))
    if not keys.shape[1]:
        return np.zeros(release.records, np.int64)
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _membership(finder: Finder, codes: Sequence[NDArray], people: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The one class that covers each person (-1: none or several), and the classes whose members are all known."""
    row_class = finder.class_of
    mine = np.full(people, -1, np.int64)
    for part in finder.candidates(codes, people):
        sole = part.groups[part.of] == 1
        mine[part.people[sole]] = row_class[part.order[part.bounds[part.of[sole]]]]
    sizes = np.diff(finder.bounds)
    return mine, np.bincount(mine[mine >= 0], minlength=len(sizes)) == sizes


def _share_table(row_class: NDArray, values: NDArray, d: int) -> NDArray[np.float64]:
    classes = int(row_class.max(initial=-1)) + 1
    counts = np.bincount(row_class * d + values, minlength=classes * d).reshape(classes, d)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _top_shares(row_class: NDArray, values: NDArray, d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest share of a value in every row's class, twice."""
    top = _share_table(row_class, values, d).max(axis=1)[row_class]
    return top.copy(), top


def _overall(values: NDArray, d: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(values, minlength=d) / max(1, len(values)))


def _parts(table: Records, who: NDArray, mine: NDArray, k: int) -> NDArray[np.int64]:
    """The parts that k alone leads to inside every class.

    One run for all: the class is a column of its own that weighs more than all others together, so that Mondrian cuts
    along it first, which k permits, and then goes on inside.
    """
    from noren.methods.mondrian.classes import classes_of

    number = np.unique(mine, return_inverse=True)[1].reshape(-1)
    name = "class"
    while name in table.columns:
        name += "_"
    columns = {column: table.columns[column] for column in table.quasi}
    codes = {column: table.codes[column][who] for column in table.quasi}
    domain = Domain(tuple(map(str, range(int(number.max()) + 1))), "integer", "data")
    columns[name] = Column(role=Role.QUASI_IDENTIFIER).met(name, domain)
    codes[name] = number
    method = Mondrian(refinement=0, weights={name: 1e6})
    return classes_of(Records(len(who), columns, codes), [KAnonymity(k=k)], repeatable, method)[0].astype(np.int64)


def _several(mine: NDArray, parts: NDArray) -> NDArray[np.bool_]:
    """The people of classes that fall into several parts, none of which reaches into another class."""
    pairs = np.unique(np.stack([mine, parts], axis=1), axis=0)
    mixed = np.bincount(pairs[:, 1], minlength=int(parts.max()) + 1) > 1
    spoilt = np.zeros(int(mine.max()) + 1, bool)
    spoilt[pairs[mixed[pairs[:, 1]], 0]] = True
    many = np.bincount(pairs[:, 0], minlength=len(spoilt)) > 1
    return np.asarray((many & ~spoilt)[mine])
