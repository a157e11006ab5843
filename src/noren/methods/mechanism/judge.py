"""The beliefs about a secret under the rule of the method that made the classes, and the verdict on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines import Group, Plan, Recode, Records
from noren.methods.base import FEW_PEOPLE
from noren.methods.blind import CLASS_SIZE
from noren.methods.mechanism.refusals import CLEARLY
from noren.methods.mechanism.rule import Beliefs, Rule
from noren.methods.mechanism.sight import Sight
from noren.methods.whole_people import one_row_published
from noren.models.base import Model
from noren.models.class_check import ClassModel
from noren.models.verdict import Verdict
from noren.release.published import Published
from noren.release.store import MemoryStore, PeopleStore, Store, names_people
from noren.statements import Cells, CodeCells, ExactStatement, GroupStatement, NodeStatement, Statement
from noren.statements.mean import mean_cells

CHOSEN = "chosen"
"""How a release names the method that another chose."""


def rule_of(name: str, settings: Mapping[str, Any]) -> Rule | None:
    """Return the rule of a method by its name in a release; None for an unknown method.

    settings: as far as they are known, and what the release says. One that says a class size was blind.
    """
    from noren.methods import METHODS

    name = str(settings.get(CHOSEN, name))
    if name not in METHODS:
        return None
    kind = METHODS[name]
    said = {"blind": CLASS_SIZE in settings, **settings}
    known = {key: value for key, value in said.items() if key in kind.model_fields}
    return kind.model_validate({"name": name, **known}).mechanism()


def guarding(requirements: Sequence[Model], name: str) -> list[ClassModel]:
    """Return the requirements on a secret in classes."""
    return [m for m in requirements if isinstance(m, ClassModel) and m.about == "columns" and name in m.on]


class Replay:
    """A release beside its original, replayed by the rule of its method."""

    def __init__(self, published: Published, table: Records, requirements: Sequence[Model], rule: Rule) -> None:
        if table.people is not None and names_people(published.store):  # classes were made of people
            published, table = one_row_published(published, table)
        self.published = published
        self.table = table
        self.requirements = requirements
        self.rule = rule
        self._seen: dict[str, Sight] = {}
        self._found: dict[str, Beliefs] = {}

    def sight(self, secret: Statement) -> Sight:
        if secret.name not in self._seen:
            least = max([2, *(model.least_class_size for model in self.requirements)])
            models = guarding(self.requirements, secret.name)
            self._seen[secret.name] = Sight.of(self.published, self.table, secret, models, least)
        return self._seen[secret.name]

    def beliefs(self, secret: Statement) -> Beliefs:
        if secret.name not in self._found:
            self._found[secret.name] = self.rule.beliefs(self.sight(secret))
        return self._found[secret.name]

    def truth(self, secret: Statement) -> NDArray[np.int64]:
        """Return everybody's published code of the secret; -1 for one that the release does not list."""
        return self.table.published(secret)

    def worst(self, secret: Statement) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the belief in everybody's true secret, and the error of simulated beliefs."""
        found = self.beliefs(secret)
        return found.of_truth(self.truth(secret)), found.error[found.item]

    def believed(self, name: str) -> float:
        """Return the largest belief in anybody's true secret, less the simulation error."""
        belief, error = self.worst(self.published.column(name))
        return float((belief - CLEARLY * error).max(initial=0.0))

    def certain(self, name: str) -> int:
        """Return how many people's secret the rule discloses for certain, or may disclose."""
        if self.rule.silent or self.table.n <= FEW_PEOPLE:
            return 0 if self.rule.silent else self.table.n
        secret = self.published.column(name)
        return int(self.rule.certain(self.sight(secret), self.truth(secret)).sum())

    def verdict(self, model: Model, name: str) -> Verdict:
        """Return the verdict on one column of a requirement. A simulated belief must clearly exceed the limit.

        Where the rule knows no bound, what is believed may be anything.
        """
        belief, error = self.worst(self.published.column(name))
        least = belief - CLEARLY * error
        achieved = float(least.max(initial=0.0)) if self.rule.bounded else 1.0
        breaches = int((least > model.required + 1e-9).sum()) if self.rule.bounded else self.table.n
        said = f"believes nobody's secret above {achieved:.4g}"
        if not self.rule.bounded:
            said = f"believes somebody's secret with at least {least.max(initial=0.0):.4g}; no upper bound is known"
        return Verdict(
            model=model.model,
            column=name,
            required=model.required,
            achieved=achieved,
            holds=breaches == 0,
            basis="the original",
            records=self.table.n,
            breaches=breaches,
            statement=f"somebody who knows the method {said}: {self.rule.says}",
        )


def published_of(table: Records, plan: Plan) -> Published:
    """Return what a plan would publish of the columns of classes, in the order of the records."""
    keep = np.ones(table.n, bool) if plan.keep is None else plan.keep
    statements: list[Statement] = []
    cells: dict[str, Cells] = {}
    for name, column in table.columns.items():
        change = plan.of(name)
        statement: Statement = ExactStatement(column)
        data = CodeCells(column.d, table.codes[name])
        if isinstance(change, Recode):
            statement = NodeStatement(column.over(name, column.domain, hierarchy=None), change.nodes)
            data = CodeCells(len(change.nodes), change.data)
        elif isinstance(change, Group):
            statement = GroupStatement(column, change.table.groups, 1, change.table)
            data = CodeCells(change.table.groups, change.data)
        elif name in plan.averaged:
            amounts = column.domain.amounts
            assert amounts is not None, "means are for numbers"
            statement, data = mean_cells(column, amounts[table.codes[name]], plan.averaged[name].data, keep)
        statements.append(statement)
        cells[name] = data.take(np.flatnonzero(keep))
    store: Store = MemoryStore(cells)
    if table.people is not None:
        store = PeopleStore(store, table.people[keep])
    return Published(statements, store, int(keep.sum()), suppressed=int((~keep).sum()))
