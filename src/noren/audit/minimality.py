"""The minimality attack (Wong, Fu, Wang and Pei, 2007): the choices of a method disclose secrets.

The adversary knows the method, that it changes no more than it must, and everybody's quasi-identifiers. Every method
says how it is replayed (`Method.mechanism`): whom it moved, which cut it refused, whom it skipped. The attack puts the
rule of the method that was used beside the release and reports what is believed from the classes alone and with the
rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.base import Attack, AttackResult, Case, Lines, Scenario
from noren.audit.people import People, known_people, person_lines
from noren.audit.sample import LEVEL, Sample, mean_bounds, sample_of
from noren.audit.targets import key_names, owners_of, published_classes, searchable
from noren.engines.finding import Matches
from noren.methods.mechanism.judge import guarding, rule_of
from noren.methods.mechanism.omissions import left_out
from noren.methods.mechanism.refusals import CLEARLY, Cut, learn
from noren.methods.mechanism.rule import CERTAIN, Beliefs, Rule, Silent
from noren.methods.mechanism.sight import Sight
from noren.models import MODELS
from noren.models.base import Model
from noren.models.class_check import ClassModel
from noren.models.kernels import mean_beliefs
from noren.models.term_check import TermModel, linked_terms
from noren.policy.policy import Policy
from noren.ragged import chosen, owners
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
SIMULATED = 20_000
"""Rows of a large release whose classes are simulated."""


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
    """Conclude from the size of a class why the method did not cut it."""

    knows: ClassVar[str] = "more"
    adversary: ClassVar[str] = (
        "knows the method and its requirements, that it generalises no more than necessary, and the exact "
        "quasi-identifiers of everybody in the table"
    )
    success: ClassVar[str] = (
        "the largest belief in one sensitive value of a person, and the number of classes in which it exceeds the "
        "published share"
    )
    needs_rows: ClassVar[str | None] = "it replays the method on the rows of every class"

    name: Literal["minimality"] = "minimality"
    draws: int = Field(
        default=200, ge=20, le=100_000, description=("Number of assignments of secrets that are simulated.")
    )
    k: int | None = Field(default=None, ge=2, description="The k of the method's cuts; by default the published one.")

    @classmethod
    def applies(cls, release: Release) -> str | None:
        """Return why the attack does not apply; None if it applies."""
        if _leaves_out(release):
            return None
        used = _classes_by(release)
        if used is None or used[1].silent:
            return _why_silent(release, used)
        if not _targets(release, None):
            return "no requirement on a sensitive column influences its classes"
        return None

    def run(self, case: Case) -> list[AttackResult]:
        release = case.release
        self.demand(case.release)
        people = None if case.original is None else known_people(case)
        out = [self._on_terms(case, columns, model) for columns, model in _leaves_out(release)]
        targets = _targets(release, self.k, case.policy)
        with case.stage("Replaying the method", len(targets)) as progress:
            for target in targets:
                out.append(self._outside(case, target) if people is None else self._inside(case, target, people))
                progress(1)
        if not out:
            reason = _why_silent(release, _classes_by(release, None, case.policy))
            raise self.refusal(reason)
        return out

    # ------------------------------------------------------------------ outsider

    def _outside(self, case: Case, target: Guarded) -> AttackResult:
        """Compute what an outsider learns if every large enough class was not cut because of k records."""
        own = published_classes(case, searchable(case.release))
        row_class, values = owners_of(own), _values(case.release, target.statement)
        before = _top_shares(row_class, values, target.statement.d)
        facts = self._facts(target, len(own.bounds) - 1)
        lines = case.row_lines()
        alone = {"belief": before, "before": before}
        plain = _scenario(lines, "classes", "the classes alone", alone, target.promised, whole=True)
        if not target.rule.refuses_cuts or (values < 0).any():
            note = (
                "an outsider does not know how many people share quasi-identifiers, and cannot replay the method "
                "without these numbers"
            )
            return self._result(target, values, (plain,), facts, [note], None)
        some = lines.some
        few = some if some.whole else sample_of(some.n, min(SIMULATED, len(some)))
        belief, error, gains = self._cut_off(target, own, values, before, few)
        title = f"supposing that {target.k} records were cut off"
        found = {"belief": belief, "before": few[before], "gains": gains}
        lines = Lines("row", few.lines + 1, few, holder_only=False)
        told = _scenario(lines, "at-most", title, found, target.promised, error, few[row_class])
        notes = [
            (
                "an outsider does not know how a class would have been cut; the figures suppose the worst case, that "
                "the person is among k records that would have been cut off"
            ),
            *few.note("rows"),
        ]
        return self._result(target, values, (plain, told), facts, notes, None)

    def _cut_off(
        self, target: Guarded, own: Matches, values: NDArray, before: NDArray, few: Sample
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Return the belief about every row that is measured, its error, and whether it is a gain.

        Only classes of these rows are simulated.
        """
        belief, gains, error = few[before].copy(), np.zeros(len(few), bool), np.zeros(len(few))
        classes = np.unique(few[owners_of(own)])
        classes = classes[np.diff(own.bounds)[classes] >= 2 * target.k]
        if len(classes):
            bounds, at = chosen(own.bounds, classes)
            rows, of = own.order[at], owners(bounds)
            cut_off = np.arange(len(of)) - bounds[of] < target.k
            cut = Cut(of, 2 * of + ~cut_off, values[rows], target.statement.d)
            overall = _overall(values, target.statement.d)
            found = learn(cut, target.models, target.statement, overall, self.draws)
            place = np.full(few.n, -1, np.int64)
            place[rows] = 2 * of
            part = few[place]
            mine = part >= 0
            belief[mine] = np.maximum(found.belief[part[mine]], belief[mine])
            gains[mine], error[mine] = found.gains[part[mine]], found.error[part[mine]]
        return belief, error, gains

    # ------------------------------------------------------------------ holder

    def _inside(self, case: Case, target: Guarded, people: People) -> AttackResult:
        """Return the people of the original, in the form that the method's rule needs."""
        lines, truth = person_lines(case, people), people.published(target.statement)
        sight = Sight.of(case.release, people.records, target.statement, target.models, target.k)
        sight = replace(sight, draws=self.draws)
        found = target.rule.beliefs(sight)
        item = found.item
        before, after = found.before.max(axis=1), found.after.max(axis=1)
        gains = found.told & (after > sight.highest + CLEARLY * found.error + 1e-9)
        alone = {"belief": before[item], "before": before[item]} | _truth(found, found.before, truth, after=False)
        known = {"belief": after[item], "before": before[item], "gains": gains[item], "told": found.told[item]}
        known |= _truth(found, found.after, truth, after=True)
        most = target.promised or float(sight.shares.max())
        plain = _scenario(lines, "classes", "the classes alone", alone, most, whole=True)
        title = "with the method's rule"
        told = _scenario(lines, "minimality", title, known, most, found.error[item], item, whole=True)
        gaining = len(np.unique(sight.pair_class[gains[sight.pair_item]]))
        facts = self._facts(target, sight.classes) | dict(found.facts) | {"gaining_classes": gaining}
        notes = [*found.notes]
        if found.left:
            moved, right = found.leavers(truth)
            facts |= {"moved_of_one_secret": moved, "moved_right": right}
            notes.append(
                f"{moved:,} people were moved out of groups with a dominant secret; {right:,} of them have that secret"
            )
        return self._result(target, _values(case.release, target.statement), (plain, told), facts, notes, truth)

    # ------------------------------------------------------------------ terms

    def _on_terms(self, case: Case, columns: tuple[Statement, ...], model: TermModel) -> AttackResult:
        """Compute the beliefs of an adversary who knows the search about the rows of every group."""
        release, knowledge = case.release, columns[0].column.known
        cells = release.cells([one.name for one in columns])
        terms = linked_terms([(one, cells[one.name]) for one in columns], knowledge)
        alpha = knowledge.priors
        if alpha is None:
            alpha = mean_beliefs(terms.offsets, terms.data, *knowledge.links)
        own = published_classes(case, searchable(release))
        found = left_out(terms, knowledge, model, np.asarray(alpha, np.float64), own.order, own.bounds)
        n = len(found.rows)
        lines = Lines("row", found.rows + 1, sample_of(n, 0), holder_only=False)
        scenarios = [
            _scenario(lines, name, title, {"belief": now, "before": found.before, "gains": now > found.before + RISES})
            for name, title, now in (
                ("terms", "the published terms", found.before),
                ("minimality", "with the method's rule", found.after),
            )
        ]
        peak = float(np.max(alpha))
        facts = {"method": "suppress", "rule": TERM_RULE, "excluded": found.excluded}
        notes = [
            (
                f"of the terms that rows do not show, {found.excluded:,} could have been published and so were never "
                f"there; {found.possible:,} may have been suppressed"
            )
        ]
        if n < release.rows:
            notes.append(f"{n:,} of {release.rows:,} rows were examined")
        return self.make_result(
            target=tuple(one.name for one in columns),
            baseline={"mean_belief": peak, "max_belief": peak, "certain": 0.0, "gains": 0.0},
            scenarios=scenarios,
            titles={name: title for name, title in TITLES.items() if name != "above_promise"},
            shares=SHARES[1:],
            facts=facts | {"possible": found.possible, "rows": n},
            notes=notes,
        )

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
            gaining = f"{facts['gaining_classes']:,} of {facts['classes']:,}"
            told.insert(0, f"{gaining} classes disclose more than they publish")
        if facts.get("cut_by_k_alone"):
            told.append(
                f"with k = {facts['k']} as the only requirement, {facts['cut_by_k_alone']:,} classes would have been "
                "cut"
            )
        if facts.get("undecided_classes"):
            told.append(
                f"{facts['undecided_classes']:,} classes are undecided: too few simulated draws break the requirement"
            )
        if any(scenario.bounds for scenario in scenarios):
            told.append(f"bounds ({LEVEL:.0%}) cover the error of {self.draws} simulated draws")
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
    """Return the columns whose terms were suppressed, and their requirements."""
    from noren.methods import METHODS

    used = [METHODS[one.name] for one in release.manifest.methods if one.name in METHODS]
    return term_requirements(release) if any(kind.leaves_out_terms for kind in used) else []


def _classes_by(release: Release, name: str | None = None, policy: Policy | None = None) -> tuple[str, Rule] | None:
    """Return the method that formed the classes of a column, and its rule."""
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
        return "the rule of its method is not known"
    assert isinstance(used[1], Silent)
    return used[1].says


def _targets(release: Release, k: int | None, policy: Policy | None = None) -> list[Guarded]:
    """Return the sensitive columns whose values classes show and that have a requirement besides k-anonymity."""
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


def _scenario(
    lines: Lines,
    name: str,
    title: str,
    found: dict[str, NDArray],
    promised: float | None = None,
    error: NDArray | None = None,
    together: NDArray | None = None,
    whole: bool = False,
) -> Scenario:
    """Summarise the beliefs of some lines. `whole`: figures of everybody, for the lines that are measured.

    together: lines whose simulated errors add up; classes are simulated independently.
    """
    belief = found["belief"]
    n = max(1, len(belief))
    slack = 0.0 if error is None else CLEARLY * error
    summary = {
        "mean_belief": float(belief.sum() / n),
        "max_belief": float(belief.max(initial=0.0)),
        "above_promise": float((belief - slack > (1.0 if promised is None else promised) + 1e-9).sum() / n),
        "above_half": float((belief > 0.5 + 1e-9).sum() / n),
        "certain": float((belief >= CERTAIN).sum() / n),
        "mean_rise": float((belief - found["before"]).sum() / n),
        "gains": float(found["gains"].mean()) if "gains" in found else 0.0,
    }
    if "right" in found:
        summary |= {"right": float(found["right"].mean()), "mean_truth_belief": float(found["truth_belief"].mean())}
    bounds = {}
    if together is not None and error is not None and error.any():
        by_class = np.bincount(together, error)
        bounds["mean_belief"] = mean_bounds(summary["mean_belief"], float(np.sqrt((by_class**2).sum()) / n))
    columns = {name: lines.some[figures] for name, figures in found.items()} if whole else found
    return lines.scenario(name, title, summary, columns, () if whole else (*SHARES, "right"), bounds=bounds)


def _truth(found: Beliefs, table: NDArray, truth: NDArray, *, after: bool) -> dict[str, NDArray]:
    """Return whether the likeliest value is the true one, and the belief in the true value."""
    guess = table.argmax(axis=1)[found.item]
    return {"right": (guess == truth).astype(float), "truth_belief": found.of_truth(truth, after)}


# ---------------------------------------------------------------------- published rows


def _values(release: Release, statement: Statement) -> NDArray[np.int64]:
    """Return the value of every row; -1 for a generalised one."""
    cells = release.cells([statement.name])[statement.name]
    found = np.asarray(statement.key(cells), np.int64)
    return found if statement.nodes is None else np.where(found < statement.d, found, -1)


def _top_shares(row_class: NDArray, values: NDArray, d: int) -> NDArray[np.float64]:
    """Return the largest share of a value in every row's class; generalised values are not counted."""
    classes = int(row_class.max(initial=-1)) + 1
    shown = values >= 0
    counts = np.bincount(row_class[shown] * d + values[shown], minlength=classes * d).reshape(classes, d)
    return np.asarray((counts.max(axis=1) / np.bincount(row_class, minlength=classes))[row_class])


def _overall(values: NDArray, d: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(values, minlength=d) / max(1, len(values)))


TERM_RULE = (
    "the method suppresses the cheapest terms that make a group meet the requirement, so a term that could have stayed "
    "was never there"
)
RISES = 1e-6


def term_requirements(release: Release) -> list[tuple[tuple[Statement, ...], TermModel]]:
    """Return the columns of terms that share a knowledge table, with their requirements."""
    asked = [MODELS[str(one["model"])].model_validate(one) for one in release.manifest.requirements]
    out: dict[int, tuple[list[Statement], TermModel]] = {}
    for one in release.statements:
        models = [model for model in asked if isinstance(model, TermModel) and one.name in model.on]
        if one.terms is not None and models:
            out.setdefault(id(one.column.known), ([], models[0]))[0].append(one)
    return [(tuple(columns), model) for columns, model in out.values()]
