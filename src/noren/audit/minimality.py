"""The minimality attack (Wong, Fu, Wang and Pei, 2007): the form of a release has a reason, and the reason tells.

The adversary knows the method, that it changes no more than it must, and everybody's quasi-identifiers. Every method
says how it is replayed (`Method.mechanism`): whom it moved, which cut it refused, whom it passed over. The attack puts
the rule of the method that was used beside the release and reports what is believed from the classes alone and with
the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Scenario
from noren.audit.people import People, known_people
from noren.audit.sample import LEVEL, Sample, mean_bounds
from noren.audit.targets import key_names, searchable, sorted_rows
from noren.methods.mechanism.cutting import CLEARLY, Cut, learn
from noren.methods.mechanism.judge import guarding, rule_of
from noren.methods.mechanism.omissions import left_out
from noren.methods.mechanism.rule import CERTAIN, Beliefs, Rule, Silent
from noren.methods.mechanism.sight import Sight
from noren.models import MODELS
from noren.models.base import Model
from noren.models.class_check import ClassModel
from noren.models.term_check import TermModel, linked_terms
from noren.policy.policy import Policy
from noren.ragged import owners
from noren.release.release import Release
from noren.statements import Statement
from noren.workflow.mechanism import settings_of

TITLES = {
    "mean_belief": "mean belief",
    "max_belief": "largest belief",
    "above_promise": "above the promise",
    "certain": "certain",
    "gains": "gain",
}
TRUTH_TITLES = {"right": "right guess"}
SHARES = ("above_promise", "certain", "mean_belief", "gains")


@dataclass(frozen=True)
class Guarded:
    """A sensitive column that a requirement protects by classes, and the rule of the method that formed them."""

    statement: Statement
    models: Sequence[ClassModel]
    k: int
    rule: Rule
    method: str
    promised: float | None
    """The largest share that the requirements permit, where they name one."""


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
    needs_rows: ClassVar[str | None] = "it replays the method on the rows of every class"

    name: Literal["minimality"] = "minimality"
    draws: int = Field(default=200, ge=20, le=100_000, description="Ways to hand out values that are simulated.")
    k: int | None = Field(default=None, ge=2, description="The k that alone would decide; by default as published.")

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Why there is nothing to attack; None if there is."""
        if _leaves_out(release):
            return None
        used = _classes_by(release)
        if used is None or used[1].silent:
            return _why_silent(release, used)
        if not _targets(release, None):
            return "no requirement on a sensitive column that classes publish decides what they look like"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        release = case.release
        self.demand(case.release)
        people = None if case.original is None else known_people(case)
        out = [attack_terms(self, release, columns, model) for columns, model in _leaves_out(release)]
        targets = _targets(release, self.k, case.policy)
        with case.stage("Replaying the method", len(targets)) as progress:
            for target in targets:
                some = case.measured_rows if people is None else case.measured(people.n)
                if people is None:
                    out.append(self._outside(release, target, some))
                else:
                    out.append(self._inside(case, target, people, some))
                progress(1)
        if not out:
            reason = _why_silent(release, _classes_by(release, None, case.policy))
            raise self.refusal(reason)
        return out

    # ------------------------------------------------------------------ outsider

    def _outside(self, release: Release, target: Guarded, some: Sample) -> AttackResult:
        """Without people: how much a cut of k records off every class large enough would tell, were it the reason."""
        searchable(release)
        row_class, values = _classes(release), _values(release, target.statement)
        classes = int(row_class.max(initial=-1)) + 1
        before = _top_shares(row_class, values, target.statement.d)
        rows = np.arange(1, len(row_class) + 1)
        facts = self._facts(target, classes)
        lines = _Lines("row", rows, target.promised, False, some)
        plain = lines.scenario("classes", "the classes alone", before, before)
        if not target.rule.refuses_cuts or (values < 0).any():
            note = "an outsider does not know how many people look alike, and the rule tells nothing without that"
            return self._result(target, values, (plain,), facts, [note], None)
        belief, error, gains = self._cut_off(target, row_class, values, before)
        title = f"if {target.k} records had been cut off"
        told = lines.scenario("at-most", title, belief, before, row_class, error, {"gains": gains})
        note = (
            "an outsider does not know how a class would have been cut: the figures suppose that k records would have "
            "been cut off and that the person is one of them, which tells most"
        )
        return self._result(target, values, (plain, told), facts, [note], None)

    def _cut_off(
        self, target: Guarded, row_class: NDArray, values: NDArray, before: NDArray
    ) -> tuple[NDArray, NDArray, NDArray]:
        """The belief about every row, its error, and whether it is a gain."""
        size = np.bincount(row_class)[row_class]
        order = np.argsort(row_class, kind="stable")
        order = order[size[order] >= 2 * target.k]
        belief, gains = before.copy(), np.zeros(len(row_class), bool)
        error = np.zeros(len(row_class))
        if len(order):
            of = np.unique(row_class[order], return_inverse=True)[1].reshape(-1)
            first = np.searchsorted(of, of)
            cut = Cut(of, 2 * of + (np.arange(len(of)) - first >= target.k), values[order], target.statement.d)
            overall = _overall(values, target.statement.d)
            found = learn(cut, target.models, target.statement, overall, self.draws)
            belief[order] = np.maximum(found.belief[2 * of], before[order])
            gains[order], error[order] = found.gains[2 * of], found.error[2 * of]
        return belief, error, gains

    # ------------------------------------------------------------------ holder

    def _inside(self, case: Case, target: Guarded, people: People, some: Sample) -> AttackResult:
        """The original's people, as the rule speaks of them."""
        release = case.release
        sight = self._sight(case, target, people)
        rule, rows = target.rule.drawn(self.draws), people.rows
        if not some.whole and rule.answers_some:
            sight = sight.asking(np.unique(sight.item[some.lines]))
        found = rule.beliefs(sight)
        truth = people.published(target.statement)
        item = found.item
        if sight.asked is not None:  # figures are of those who are measured
            item, rows, truth = some[item], some[rows], some[truth]
            found = replace(found, item=item)
        before, after = found.before.max(axis=1)[item], found.after.max(axis=1)[item]
        error = found.error[item]
        gains = (found.told & (found.after.max(axis=1) > sight.highest + CLEARLY * found.error + 1e-9))[item]
        lines = _Lines("person", rows, target.promised or float(sight.shares.max()), True, some)
        plain = lines.scenario(
            "classes", "the classes alone", before, before, None, None, _truth(found, found.before, truth, after=False)
        )
        extra = {"gains": gains, "told": found.told[item]} | _truth(found, found.after, truth, after=True)
        told = lines.scenario("minimality", "with the method's rule", after, before, item, error, extra)
        facts = self._facts(target, sight.classes) | dict(found.facts)
        moved, right = found.leavers(truth) if found.left else (0, 0)
        if found.left:
            facts |= {"moved_of_one_secret": moved, "moved_right": right}
        gaining = np.zeros(len(found.told), bool)
        gaining[item[gains]] = True
        place = sight.place[sight.pair_item]
        facts["gaining_classes"] = len(np.unique(sight.pair_class[(place >= 0) & gaining[place]]))
        if sight.asked is not None:
            facts["measured"] = len(some)
        notes = [*(some.note() if sight.asked is not None else []), *found.notes]
        if found.left:
            notes.append(f"{moved:,} people left groups that kept one dominant secret; {right:,} of them have it")
        return self._result(target, _values(release, target.statement), (plain, told), facts, notes, truth)

    def _sight(self, case: Case, target: Guarded, people: People) -> Sight:
        """The release as the adversary sees it; what does not depend on the secret is worked out once."""
        of = (target.statement, target.models, target.k)
        first: Sight | None = case.memory.get("sight")
        found = None if first is None else first.about(case.release, *of)
        if found is None:
            found = Sight.of(case.release, people.records, *of)
            case.memory.setdefault("sight", found)
        return found

    # ------------------------------------------------------------------ result

    def _facts(self, target: Guarded, classes: int) -> dict[str, Any]:
        return {
            "classes": classes,
            "k": target.k,
            "draws": self.draws,
            "method": target.method,
            "rule": target.rule.says,
            "promised": target.promised,
            "requirements": [model.model for model in target.models],
        }

    def _result(
        self,
        target: Guarded,
        values: NDArray,
        scenarios: tuple[Scenario, ...],
        facts: dict[str, Any],
        notes: Sequence[str],
        truth: NDArray | None,
    ) -> AttackResult:
        known = values[values >= 0] if truth is None else truth[truth >= 0]
        overall = _overall(known, target.statement.d)
        peak = float(overall.max())
        above = float(peak > (target.promised or 1.0) + 1e-9)
        baseline = {"mean_belief": peak, "max_belief": peak, "above_promise": above, "certain": 0.0, "gains": 0.0}
        if truth is not None:
            baseline |= {"right": float((truth == overall.argmax()).mean())}
        told = [f"the rule of {target.method!r}: {target.rule.says}"]
        if "gaining_classes" in facts:
            least = "at least " if "measured" in facts else ""
            told.insert(0, f"{least}{facts['gaining_classes']:,} of {facts['classes']:,} classes give something away")
        if facts.get("cut_by_k_alone"):
            told.append(f"k = {facts['k']} alone would have cut {facts['cut_by_k_alone']:,} classes")
        if facts.get("undecided_classes"):
            told.append(f"{facts['undecided_classes']:,} classes are undecided: hardly any draw breaks the requirement")
        if any(scenario.bounds for scenario in scenarios):
            told.append(f"bounds are {LEVEL:.0%}, of the simulation of {self.draws} draws")
        return self.make_result(
            target=(target.statement.name,),
            baseline=baseline,
            scenarios=scenarios,
            titles=TITLES | (TRUTH_TITLES if truth is not None else {}),
            shares=(*SHARES, *(("right",) if truth is not None else ())),
            facts=facts,
            notes=(*told, *notes),
        )


def _leaves_out(release: Release) -> list[tuple[tuple[Statement, ...], TermModel]]:
    """The columns of which terms were left out, and what was asked of them."""
    from noren.methods import METHODS

    used = [METHODS[one.name] for one in release.manifest.methods if one.name in METHODS]
    return term_requirements(release) if any(kind.leaves_out_terms for kind in used) else []


def _classes_by(release: Release, name: str | None = None, policy: Policy | None = None) -> tuple[str, Rule] | None:
    """The method that formed the classes (of a column: the first that speaks of it or a quasi-identifier), its rule."""
    keys = None if name is None else {name, *key_names(release, name)[0]}
    found = None
    for used in release.manifest.methods:
        if keys is not None and used.on and not keys & set(used.on):
            continue
        rule = rule_of(used.name, settings_of(policy, used.name) | used.facts)
        if rule is not None and (found is None or found[1].silent):
            found = used.chosen or used.name, rule
    return found


def _why_silent(release: Release, used: tuple[str, Rule] | None) -> str:
    if used is None:
        return "the rule of the method that made it is not known"
    assert isinstance(used[1], Silent)
    return used[1].says


def _targets(release: Release, k: int | None, policy: Policy | None = None) -> list[Guarded]:
    """The sensitive columns whose values classes show, with a requirement on them besides k."""
    asked: list[Model] = [MODELS[str(one["model"])].model_validate(one) for one in release.manifest.requirements]
    least = k or max([2, *(model.least_class_size for model in asked)])
    out = []
    for one in release.statements:
        used = _classes_by(release, one.name, policy)
        shown = (one.is_exact or one.nodes is not None) and not one.column.is_open
        models = guarding(asked, one.name)
        if used is not None and not used[1].silent and shown and one.role.needs_requirement and models:
            shares = [share for model in models if (share := model.largest_share) is not None]
            out.append(Guarded(one, models, least, used[1], used[0], min(shares, default=None)))
    return out


@dataclass(frozen=True)
class _Lines:
    """Lines of scenarios: people or rows. Figures are of all of them, lines of those that are measured."""

    by: Literal["person", "row"]
    rows: NDArray
    promised: float | None
    holder_only: bool
    some: Sample

    def scenario(
        self,
        name: str,
        title: str,
        belief: NDArray,
        before: NDArray,
        together: NDArray | None = None,
        error: NDArray | None = None,
        extra: dict[str, NDArray] | None = None,
    ) -> Scenario:
        """together: lines whose simulated errors add up; classes are simulated independently."""
        import polars as pl

        more = extra or {}
        n = max(1, len(belief))
        slack = 0.0 if error is None else CLEARLY * error
        told = {"record": self.rows, "belief": belief, "before": before} | more
        measured = len(self.rows) < self.some.n
        frame = pl.DataFrame(told if measured else {name: self.some[found] for name, found in told.items()})
        most = 1.0 if self.promised is None else self.promised
        summary = {
            "mean_belief": float(belief.sum() / n),
            "max_belief": float(belief.max(initial=0.0)),
            "above_promise": float((belief - slack > most + 1e-9).sum() / n),
            "above_half": float((belief > 0.5 + 1e-9).sum() / n),
            "certain": float((belief >= CERTAIN).sum() / n),
            "mean_rise": float((belief - before).sum() / n),
            "gains": float(more["gains"].mean()) if "gains" in more else 0.0,
        }
        if "right" in more:
            summary |= {"right": float(more["right"].mean()), "mean_truth_belief": float(more["truth_belief"].mean())}
        bounds = {}
        if together is not None and error is not None and error.any():
            by_class = np.bincount(together, error)
            bounds["mean_belief"] = mean_bounds(summary["mean_belief"], float(np.sqrt((by_class**2).sum()) / n))
        if measured:
            bounds |= self.some.bounds(summary, (*SHARES, "right"))
        return Scenario(name, title, self.by, summary, frame, self.holder_only, bounds, self.some.of)


def _truth(found: Beliefs, table: NDArray, truth: NDArray, *, after: bool) -> dict[str, NDArray]:
    """Whether the likeliest value is everybody's own, and how much that one is believed."""
    guess = table.argmax(axis=1)[found.item]
    return {"right": (guess == truth).astype(float), "truth_belief": found.of_truth(truth, after)}


# ---------------------------------------------------------------------- published rows


def _values(release: Release, statement: Statement) -> NDArray[np.int64]:
    """The value of every row; -1 for a general one."""
    cells = release.cells([statement.name])[statement.name]
    found = np.asarray(statement.key(cells), np.int64)
    return found if statement.nodes is None else np.where(found < statement.d, found, -1)


def _classes(release: Release) -> NDArray[np.int64]:
    """The class of every published row: rows with equal quasi-identifiers."""
    order, bounds = sorted_rows(release)
    out = np.empty(len(order), np.int64)
    out[order] = owners(bounds)
    return out


def _top_shares(row_class: NDArray, values: NDArray, d: int) -> NDArray[np.float64]:
    """The largest share of a value in every row's class; a general value counts for none."""
    classes = int(row_class.max(initial=-1)) + 1
    shown = values >= 0
    counts = np.bincount(row_class[shown] * d + values[shown], minlength=classes * d).reshape(classes, d)
    return np.asarray((counts.max(axis=1) / np.bincount(row_class, minlength=classes))[row_class])


def _overall(values: NDArray, d: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(values, minlength=d) / max(1, len(values)))


TERM_RULE = "the cheapest terms are left out that let a group hold: what could have stayed was never there"
TERM_TITLES = {"mean_belief": "mean belief", "max_belief": "largest belief", "certain": "certain", "gains": "gain"}
RISES = 1e-6


def term_requirements(release: Release) -> list[tuple[tuple[Statement, ...], TermModel]]:
    """The columns of terms that one knowledge table links to labels, with what is required of them."""
    asked = [MODELS[str(one["model"])].model_validate(one) for one in release.manifest.requirements]
    out: dict[int, tuple[list[Statement], TermModel]] = {}
    for one in release.statements:
        models = [model for model in asked if isinstance(model, TermModel) and one.name in model.on]
        if one.terms is not None and models:
            out.setdefault(id(one.column.known), ([], models[0]))[0].append(one)
    return [(tuple(columns), model) for columns, model in out.values()]


def attack_terms(
    attack: Minimality, release: Release, columns: tuple[Statement, ...], model: TermModel
) -> AttackResult:
    """What whoever knows the search believes about the rows of every group, whose they are being unknown."""
    import polars as pl

    from noren.models.kernels import mean_beliefs

    knowledge = columns[0].column.known
    cells = release.cells([one.name for one in columns])
    terms = linked_terms([(one, cells[one.name]) for one in columns], knowledge)
    alpha = knowledge.priors
    if alpha is None:
        alpha = np.asarray(mean_beliefs(terms.offsets, terms.data, *knowledge.links))
    order, bounds = sorted_rows(release)
    found = left_out(terms, knowledge, model, np.asarray(alpha, np.float64), order, bounds)
    n = len(found.rows)
    scenarios = []
    for name, title, belief in (
        ("terms", "the terms as they stand", found.before),
        ("minimality", "with the method's rule", found.after),
    ):
        gains = belief > found.before + RISES
        frame = pl.DataFrame({"record": found.rows + 1, "belief": belief, "before": found.before, "gains": gains})
        summary = {
            "mean_belief": float(belief.mean()),
            "max_belief": float(belief.max(initial=0.0)),
            "above_half": float((belief > 0.5 + 1e-9).mean()),
            "certain": float((belief > 1 - 1e-6).mean()),
            "mean_rise": float((belief - found.before).mean()),
            "gains": float(gains.mean()),
        }
        scenarios.append(Scenario(name, title, "row", summary, frame, holder_only=False))
    peak = float(np.max(alpha))
    facts = {"method": "suppress", "rule": TERM_RULE, "excluded": found.excluded, "possible": found.possible, "rows": n}
    notes = [
        f"of all terms that a row does not show, {found.excluded:,} could have stayed and were never there; "
        f"{found.possible:,} may be missing"
    ]
    if n < release.rows:
        notes.append(f"{n:,} of {release.rows:,} rows were looked at")
    return attack.make_result(
        target=tuple(one.name for one in columns),
        baseline={"mean_belief": peak, "max_belief": peak, "certain": 0.0, "gains": 0.0},
        scenarios=scenarios,
        titles=TERM_TITLES,
        shares=("certain", "mean_belief", "gains"),
        facts=facts,
        notes=notes,
    )
