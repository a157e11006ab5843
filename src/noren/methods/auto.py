"""Leave the choice to Noren: try every method that can serve the policy and keep the one that loses least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from noren.errors import NorenError, Problem, RequirementNotMet
from noren.methods.base import CodedTable, RandomOrder, Recoding, RecodingMethod
from noren.methods.candidates import all_candidates, serving, title_of
from noren.methods.scoring import Objective, loss_of, view_of
from noren.models.base import Model
from noren.schema.roles import Role


class Auto(RecodingMethod):
    """Run the candidates of `noren compare` and publish what the best of them makes."""

    name: Literal["auto"] = "auto"
    objective: Objective = Field(
        default="queries", description="What must be least: error of count queries, lost information, or NCP."
    )
    among: tuple[str, ...] = Field(
        default=(),
        description="Names of the methods to try; if left out, all that generalise (not anatomy and rating).",
    )

    def problems(self, roles: Mapping[str, Role], requirements: Sequence[Model]) -> list[Problem]:
        known = {method.name for method in all_candidates()}
        strange = [name for name in self.among if name not in known]
        if strange:
            return [Problem("method.among", f"no method {strange[0]!r} to try.", f"Known: {', '.join(sorted(known))}.")]
        if serving(self._tried(), roles, requirements):
            return []
        reasons = [problem for method in self._tried() for problem in method.problems(roles, requirements)]
        first = list(dict.fromkeys((problem.where, problem.message, problem.hint) for problem in reasons))[:3]
        return [Problem("method.name", "no method that generalises or groups can serve this policy."),
                *(Problem(*parts) for parts in first)]  # fmt: skip

    def _tried(self) -> list[RecodingMethod]:
        """Methods that leave quasi-identifiers exact show who is in the table: they are tried only when named."""
        methods = all_candidates(self.suppression)
        return [m for m in methods if (m.name in self.among if self.among else m.name not in ("anatomy", "rating"))]

    def recode(self, table: CodedTable, requirements: Sequence[Model], order: RandomOrder) -> Recoding:
        roles = {name: facts.role for name, facts in table.columns.items()}
        best: Recoding | None = None
        least = float("inf")
        losses: list[tuple[float, str]] = []
        reasons: list[str] = []
        for method in serving(self._tried(), roles, requirements):
            try:
                recoding = method.recode(table, requirements, order)
                loss = loss_of(table, view_of(table, recoding), self.objective)
            except NorenError as error:
                reasons.append(f"{title_of(method)}: {error.message}")
                continue
            losses.append((loss, title_of(method)))
            if loss < least:
                best, least = recoding, loss
        if best is None:
            raise RequirementNotMet(
                "no method reaches the requirements: " + " ".join(reasons),
                hint="Lower a requirement, or permit suppression.",
            )
        ranked = ", ".join(f"{title} {loss:.4g}" for loss, title in sorted(losses))
        note = f"auto chose the least {self.objective} loss: {ranked}"
        return Recoding(best.columns, best.keep, (note, *best.notes))
