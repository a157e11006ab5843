"""The methods that `compare` and `auto` try, and the loss of a result.

The default is the error of count queries, because it weighs quasi-identifiers and secrets as an analyst would.
Information utility alone is degenerate: exact quasi-identifiers beside a sensitive column that says nothing score high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Literal, get_args

import numpy as np

from noren.designs import draw_columns
from noren.engines import Plan, Records, Table
from noren.errors import QueryError
from noren.methods.base import ClassMethod, Method
from noren.metrics.general import GeneralTable
from noren.metrics.information import utility_scores
from noren.metrics.losses import ncp_loss
from noren.metrics.queries import DrawnColumn, query_error
from noren.models.base import Model
from noren.schema.roles import Role
from noren.secret import Keystream
from noren.statements import CodeCells, SetCells

GROUP_SIZES = (1, 2, 5, 10, 20)
"""Values of k on the curve between suppressed terms and generalised quasi-identifiers."""
SECONDS_PER_GROUP = 0.05
"""Time that a candidate of that curve has for one group: enough for a proof in most small groups."""


def all_candidates(suppression: float = 0.0) -> list[ClassMethod]:
    """Return every method of generalised values and groups, with useful settings."""
    from noren.methods import METHODS

    tried = [method for kind in METHODS.values() for method in kind.candidates(suppression)]
    return [method for method in tried if isinstance(method, ClassMethod)]


def with_blind(methods: Sequence[ClassMethod], requirements: Sequence[Model]) -> list[ClassMethod]:
    """Add the blind forms of methods if the policy has a requirement on the mechanism."""
    if not any(model.of_mechanism for model in requirements):
        return list(methods)
    usual = {method.name: method for method in reversed(methods) if "blind" in type(method).model_fields}
    return [*methods, *(method.model_copy(update={"blind": True}) for method in reversed(usual.values()))]


def drawing_candidates(requirements: Sequence[Model]) -> list[Method]:
    """Return the ways to draw cells besides the default: every design of semantic sets, and under closeness the paper's
    p from the exact counts."""
    from noren.methods.decoys import Decoys

    out: list[Method] = []
    if any(model.separates for model in requirements):
        kinds = [kind for kind in get_args(Decoys.model_fields["design"].annotation) if kind != "best"]
        out += [Decoys(design=kind) for kind in kinds]
    if any(model.epsilon_each < inf for model in requirements):
        out.append(Decoys(prior="data"))
    return out


def term_candidates(own: Method, requirements: Sequence[Model], suppression: float = 0.0) -> list[ClassMethod]:
    """Return the methods between suppression of terms and pure generalisation.

    `suppress` with groups of at least 1, 2, 5, ... records, from the k on that the requirements ask for anyway, and
    with the search and first phase of the policy's own `suppress`; then `mondrian`, which leaves out no term.
    """
    from noren.methods.mondrian import Mondrian
    from noren.methods.suppress import Suppress

    kept: dict[str, object] = {}
    if isinstance(own, Suppress):
        free = {"k", "balance", "seconds", "total_seconds", "nodes", "suppression"}
        kept = own.model_dump(exclude_defaults=True, exclude=free)
    least = max([1, *(model.least_class_size for model in requirements if not model.on)])
    shared = kept | {"seconds": SECONDS_PER_GROUP, "suppression": suppression}
    sizes = [least, *(k for k in GROUP_SIZES if k > least)]
    curve: list[ClassMethod] = [Suppress.model_validate(shared | {"k": k}) for k in sizes]
    return [*curve, Mondrian(suppression=suppression)]


def serving(
    methods: Sequence[ClassMethod], roles: Mapping[str, Role], requirements: Sequence[Model]
) -> list[ClassMethod]:
    """Return the methods that may meet a policy, as far as that is known without the data."""
    return [method for method in methods if not method.problems(roles, requirements)]


# ---------------------------------------------------------------- how good a recoding is


Objective = Literal["queries", "utility", "ncp"]
DIMENSIONS = (1, 2, 3)
QUERIES = 200


def count_query_loss(
    table: Records,
    view: GeneralTable,
    dimensions: Sequence[int] = DIMENSIONS,
    drawn: Mapping[str, DrawnColumn] | None = None,
) -> float:
    """Mean relative error of random count queries with one to three conditions, one of them on a secret."""
    trees = {name: fact.tree for name, fact in table.columns.items() if fact.tree is not None}
    secret = next(iter(table.sensitive), None)
    errors = []
    for number in dimensions:
        if number <= len(view.measured):
            try:
                errors.append(query_error(view, trees, secret, number, QUERIES, drawn=drawn).mean)
            except QueryError:
                continue
    return float(np.mean(errors)) if errors else 0.0


def drawn_columns(table: Table, records: Records, plan: Plan) -> dict[str, DrawnColumn]:
    """Draw sets as in the plan for the kept records, in a form for count queries."""
    out = {}
    keep = slice(None) if plan.keep is None else plan.keep
    for name, design in plan.designs.items():
        index = table.columns[name].domain.index
        places = np.array([index[value] for value in records.columns[name].domain.values], np.int64)
        sets = draw_columns({name: design}, {name: places[records.codes[name][keep]]}, Keystream())[name]
        if isinstance(sets, CodeCells):  # one value is a set of one
            sets = SetCells.from_codes(sets.d, sets.data[:, None])
        out[name] = DrawnColumn.of(design, sets, places)
    return out


def loss_of(table: Records, view: GeneralTable, objective: Objective) -> float:
    """Return the objective as a loss: lower is better."""
    if objective == "queries":
        return count_query_loss(table, view)
    if objective == "utility":
        return 1 - utility_scores(view).total
    return ncp_loss(view)
