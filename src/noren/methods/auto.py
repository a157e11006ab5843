"""Try every method that can meet the policy and publish the result with the least loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from noren.engines import Plan, RandomOrder, Records, Table
from noren.engines.left_out import Members
from noren.errors import NorenError, Problem, RequirementNotMet
from noren.methods.base import ClassMethod
from noren.methods.candidates import (
    Objective,
    all_candidates,
    count_query_loss,
    drawn_columns,
    loss_of,
    serving,
    with_blind,
)
from noren.methods.parts import paired, shared, together
from noren.metrics.general import view_of
from noren.models.base import Model
from noren.progress import Meter, silent
from noren.schema.roles import Role

if TYPE_CHECKING:
    from noren.methods.mechanism.rule import Rule

AND = " + "
DRAWING = "decoys"


class Auto(ClassMethod):
    """Run the candidates of `noren compare` and publish the best result."""

    name: Literal["auto"] = "auto"
    sentence: ClassVar[str] = "Several methods were tried, and the best result is published."
    chooses: ClassVar[bool] = True
    objective: Objective = Field(
        default="queries", description="What is minimised: error of count queries, lost information, or NCP."
    )
    among: tuple[str, ...] = Field(
        default=(),
        description=(
            'Names of the methods to try; by default all that generalise (not anatomy and rating). "mondrian + decoys" '
            "generalises quasi-identifiers and hides secrets in decoy sets."
        ),
    )

    def mechanism(self) -> Rule:
        from noren.methods.mechanism.rule import Silent

        return Silent("the rule is that of the chosen method, which the release does not name")

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        requirements = [model for model in requirements if not model.of_mechanism]
        known = {method.name for method in all_candidates()}
        known |= {f"{method.name}{AND}{DRAWING}" for method in all_candidates() if method.hides_quasi}
        strange = [name for name in self.among if name not in known]
        if strange:
            return [Problem("method.among", f"no method {strange[0]!r} to try.", f"Known: {', '.join(sorted(known))}.")]
        if any(AND in name for name in self.among) or serving(self._tried(), roles, requirements):
            return []
        reasons = [problem for method in self._tried() for problem in method.problems(roles, requirements)]
        first = list(dict.fromkeys((problem.where, problem.message, problem.hint) for problem in reasons))[:3]
        return [Problem("method.name", "no method that generalises or groups can serve this policy."),
                *(Problem(*parts) for parts in first)]  # fmt: skip

    def _tried(self) -> list[ClassMethod]:
        """Return the methods to try. Methods that leave quasi-identifiers exact show who is in the table, so they must
        be named."""
        methods = all_candidates(self.suppression)
        return [m for m in methods if (m.name in self.among if self.among else m.hides_quasi)]

    def plan(self, table: Table, *, meter: Meter = silent) -> Plan:
        """Return the best plan of the methods that form classes and of named pairs that also draw the secrets."""
        names = [name.removesuffix(f"{AND}{DRAWING}") for name in self.among if AND in name]
        if not names:
            return super().plan(table, meter=meter)
        found: list[tuple[float, str, Plan]] = []
        reasons: list[str] = []
        if len(names) < len(self.among):
            alone = super().plan(table, meter=meter)
            view = view_of(table.records, alone)
            found.append((loss_of(table.records, view, self.objective), "classes alone", alone))
        for method in all_candidates(self.suppression):
            if method.name in names:
                try:
                    plan = self._pair(table, method)
                    drawn = drawn_columns(table, table.records, plan)
                    loss = count_query_loss(table.records, view_of(table.records, plan), drawn=drawn)
                    found.append((loss, f"{method.title}{AND}{DRAWING}", plan))
                except NorenError as error:
                    reasons.append(f"{method.title}{AND}{DRAWING}: {error.message}")
        if not found:
            message = "no method meets the requirements: " + " ".join(reasons)
            raise RequirementNotMet(message, hint="Lower a requirement, or permit suppression.")
        best = min(found, key=lambda one: one[:2])
        ranked = ", ".join(f"{title} {loss:.4g}" for loss, title, _ in sorted(found, key=lambda one: one[:2]))
        return replace(best[2], notes=(f"auto chose the method with the least loss: {ranked}", *best[2].notes))

    def _pair(self, table: Table, method: ClassMethod) -> Plan:
        from noren.methods import METHODS

        (drawing,) = METHODS[DRAWING].candidates(0.0)
        pair = paired(method, drawing, table.columns)
        if pair is None:
            raise RequirementNotMet("there is no secret to draw.", hint="Choose a method that forms classes.")
        return together(table, shared(table.columns, table.requirements, pair))

    def recode(self, table: Records, requirements: Sequence[Model], order: RandomOrder, meter: Meter = silent) -> Plan:
        asked = [model for model in requirements if not model.of_mechanism]
        return self._best(table, requirements, lambda method: method.recode(table, asked, order))

    def decided(
        self,
        records: Records,
        requirements: Sequence[Model],
        order: RandomOrder,
        members: Members,
        meter: Meter = silent,
    ) -> Plan:
        """Let every method choose its suppressed people, and then choose the method by its loss."""
        asked = [model for model in requirements if not model.of_mechanism]
        return self._best(records, requirements, lambda method: method.decided(records, asked, order, members))

    def _best(self, table: Records, requirements: Sequence[Model], made: Callable[[ClassMethod], Plan]) -> Plan:
        """Return the plan of the method with the smallest loss."""
        best: Plan | None = None
        least = float("inf")
        losses: list[tuple[float, str]] = []
        reasons: list[str] = []
        asked = [model for model in requirements if not model.of_mechanism]
        for method in serving(with_blind(self._tried(), requirements), table.roles, asked):
            try:
                recoding = named(made(method), method)
                if (why := _reveals(table, recoding, method, requirements)) is not None:
                    reasons.append(f"{method.title}: {why}")
                    continue
                loss = loss_of(table, view_of(table, recoding), self.objective)
            except NorenError as error:
                reasons.append(f"{method.title}: {error.message}")
                continue
            losses.append((loss, method.title))
            if loss < least:
                best, least = recoding, loss
        if best is None:
            raise RequirementNotMet(
                "no method meets the requirements: " + " ".join(reasons),
                hint="Lower a requirement, or permit suppression.",
            )
        ranked = ", ".join(f"{title} {loss:.4g}" for loss, title in sorted(losses))
        note = f"auto chose the method with the least {self.objective} loss: {ranked}"
        return replace(best, notes=(note, *best.notes))


def named(plan: Plan, method: ClassMethod) -> Plan:
    """Return the plan with the name of the method, which the release must state."""
    return replace(plan, facts={"chosen": method.name, **plan.facts})


def _reveals(table: Records, plan: Plan, method: ClassMethod, requirements: Sequence[Model]) -> str | None:
    """Return why a plan discloses too much to somebody who knows the method; None if it does not."""
    from noren.methods.mechanism.judge import Replay, guarding, published_of, rule_of

    asked = [(model, name) for model in requirements if model.of_mechanism for name in model.on]
    secrets = [name for name in table.sensitive if guarding(requirements, name)]
    if not asked and not secrets:
        return None
    if (rule := rule_of(method.name, {**method.settings, **plan.facts})) is None or (secrets and not rule.bounded):
        return "somebody who replays it may learn secrets for certain."
    if rule.silent:
        return None
    replay = Replay(published_of(table, plan), table, requirements, rule)
    for name in secrets:
        if certain := replay.certain(name):
            return f"somebody who replays it may learn {name} of {certain:,} people for certain."
    for model, name in asked:
        found = replay.verdict(model, name)
        if not found.holds:
            return f"{model.model} on {name} would be {found.achieved:.3g}."
    return None
