"""Compares candidates under one policy: their risk, loss and time.

Every candidate is recoded and verified like a release; nothing is written. The figures rest on the original, so they
are for the holder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from noren.engines import Engine, Table
from noren.errors import NorenError, PolicyError, Problem, QueryError
from noren.estimates import believed
from noren.methods import METHODS
from noren.methods.base import ClassMethod, Method
from noren.methods.candidates import count_query_loss, drawing_candidates, drawn_columns, term_candidates, with_blind
from noren.methods.incognito import Incognito
from noren.methods.incognito.search import LevelVector, best_levels
from noren.methods.parts import paired
from noren.methods.requirements import compiled
from noren.metrics.general import GeneralTable, view_of
from noren.models import FrequencyLDiversity, KAnonymity
from noren.models.base import Model, select_searchable
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.policy.toml import value
from noren.progress import Stage, quiet
from noren.release.store import names_people
from noren.results import Results, make_frame, plain
from noren.schema.column import Column
from noren.schema.roles import Role
from noren.workflow.anonymize import demand_margins, demand_rows
from noren.workflow.compare_terms import TermMeasures
from noren.workflow.comparison import Candidate, Comparison, Setting
from noren.workflow.dependence import _sampled, demand_independence
from noren.workflow.draft import Draft
from noren.workflow.losses import losses_of
from noren.workflow.mechanism import demand_bounded, demand_uncertain, replay_methods
from noren.workflow.prepare import prepare, read_policy
from noren.workflow.settling import hold_cells, judge_draft, settle_draft
from noren.workflow.verify import check

if TYPE_CHECKING:
    import polars as pl


MOST_SETTINGS = 200


def candidates(policy: Policy, own: tuple[Method, ...], suppression: float) -> list[tuple[Method, ...]]:
    """Return everything that is worth a try under a policy: its own methods, each method by itself, and pairs."""
    out: list[tuple[Method, ...]]
    if any(column.role is Role.QUASI_SENSITIVE for column in policy.attributes.values()):
        out = [(method,) for method in term_candidates(own[0], policy.require, suppression)]
    else:
        alone: list[Method] = [method for kind in METHODS.values() for method in kind.candidates(suppression)]
        forming = [method for method in alone if isinstance(method, ClassMethod)]
        alone += with_blind(forming, policy.require)[len(forming) :]
        drawing = [method for method in alone if not method.forms_classes]
        pairs = [
            paired(method, other, policy.attributes)
            for method in alone
            if isinstance(method, ClassMethod) and method.hides_quasi
            for other in drawing
        ]
        drawn = drawing_candidates(policy.require)
        out = [*((method,) for method in [*alone, *drawn]), *(pair for pair in pairs if pair is not None)]
    if own not in out and not any(method.chooses for method in own):
        out.insert(0, own)
    return out


def title(methods: Sequence[Method]) -> str:
    """Return the name of a candidate: "mondrian strict=false", "mondrian + decoys"."""
    return " + ".join(method.title for method in methods)


def plain_title(methods: Sequence[Method]) -> str:
    return " + ".join(method.name for method in methods)


def with_methods(policy: Policy, methods: tuple[Method, ...]) -> Policy | None:
    """Return the policy with other methods, or None if they cannot meet it."""
    try:
        return policy.with_method(*methods)
    except PolicyError:
        return None


def settings(policy: Policy, grid: Mapping[str, Sequence[float]]) -> list[Setting]:
    """Return every combination of the parameters in a grid; one empty setting if there is none."""
    if grid and any(column.role is Role.QUASI_SENSITIVE for column in policy.attributes.values()):
        raise QueryError("with quasi-sensitive columns k is varied already.", hint="Remove the grid.")
    known = {name for model in policy.require for name in model.parameters()}
    for name, values in grid.items():
        if name not in known:
            hint = f"Requirements here have {', '.join(sorted(known)) or 'no parameters'}."
            raise QueryError(f"no requirement has a parameter {name!r}.", hint=hint)
        if not values:
            raise QueryError(f"no values of {name!r} to try.", hint="For example k=3,5,10.")
    out = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    if len(out) > MOST_SETTINGS:
        raise QueryError(f"the grid has {len(out):,} settings; {MOST_SETTINGS} are tried at most.", hint="Try fewer.")
    return list(out)


def under(policy: Policy, setting: Setting) -> Policy:
    """Return the policy with other parameters in every requirement that has them."""
    if not setting:
        return policy
    changed = []
    for model in policy.require:
        known = {name: value for name, value in setting.items() if name in model.parameters()}
        try:
            changed.append(type(model).model_validate(model.model_dump() | known))
        except ValidationError as error:
            said = error.errors()[0]["msg"].removeprefix("Value error, ")
            text = ", ".join(f"{name} = {value:g}" for name, value in known.items())
            raise QueryError(f"{model.model} cannot have {text}: {said}.", hint="Change the grid.") from None
    return policy.with_parts(require=tuple(changed))


def compare(
    data: Any,
    policy: Policy | str | Path,
    *,
    among: Sequence[str] = (),
    suppression: float | None = None,
    classify: str | None = None,
    grid: Mapping[str, Sequence[float]] | None = None,
    engine: str | Engine | None = None,
    stage: Stage = quiet,
) -> Comparison:
    """Try every method that can meet the policy; return the candidates, lowest share of right guesses first, failures
    last.

    What is guessed is what the requirement `belief` and `audit bayes` speak of: the adversary reads all published
    columns and has learned from the other people how they go together. Equal ones stand by their count-query error.

    `grid` sweeps parameters of the requirements: {"k": [3, 5, 10], "l": [2, 3]} tries every method under all six
    pairs, in place of what the policy asks.

    Methods that form classes are also tried together with decoys for the secrets ("mondrian + decoys"). Where values of
    a set must lie apart every design of such sets is tried, and under closeness the p that the paper searches in the
    counts. With quasi-sensitive columns the candidates are the trade-off between suppressed terms and generalised
    quasi-identifiers, over the size of groups; least generalisation comes first.

    `classify` names a quasi-identifier or sensitive column: how well it can be predicted from a release is then
    measured too, by decision trees (needs scikit-learn) and by rules.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": ["cook", "clerk", "miner", "nurse"] * 10})
    >>> asked = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="job", l=2)]
    >>> roles = {"town": "quasi-identifier", "job": "sensitive"}
    >>> policy = nr.Policy(attributes=roles, require=asked, method="mondrian")
    >>> found = nr.compare(people, policy, among=["mondrian"])
    >>> found.best
    <Candidate mondrian: query error 0.000>
    >>> found.frame.select("method", "holds", "smallest_class").rows()[0]
    ('mondrian', True, 20.0)
    """
    given: dict[str, Any] = {"among": among, "suppression": suppression, "classify": classify, "grid": grid}
    found = list(iterate_candidates(data, policy, **given, engine=engine, stage=stage))
    if any(one.terms is not None for one in found):
        return Comparison(sorted(found, key=lambda c: (not c.holds, (c.losses or {}).get("ncp_loss", 1.0), c.title)))
    loss = {one.title: (one.losses or {}).get("ncp_loss", 1.0) for one in found}
    order = sorted(
        found, key=lambda one: (not one.holds, round(one.risk, 3), one.query_loss, loss[one.title], one.title)
    )
    return Comparison(order)


def iterate_candidates(
    data: Any,
    policy: Policy | str | Path,
    *,
    among: Sequence[str] = (),
    suppression: float | None = None,
    classify: str | None = None,
    grid: Mapping[str, Sequence[float]] | None = None,
    engine: str | Engine | None = None,
    stage: Stage = quiet,
) -> Iterator[Candidate]:
    """Yield the candidates of `compare` one by one, each as soon as it is measured."""
    policy = read_policy(policy)
    if suppression is None:
        suppression = max(getattr(method, "suppression", 0.0) for method in policy.methods)
    own = tuple(
        method.model_copy(update={"suppression": suppression}) if isinstance(method, ClassMethod) else method
        for method in policy.methods
    )
    everything = candidates(policy, own, suppression)
    tried = [methods for methods in everything if not among or title(methods) in among or plain_title(methods) in among]
    unknown = sorted(set(among) - {name for methods in tried for name in (title(methods), plain_title(methods))})
    if unknown:
        known = ", ".join(sorted({plain_title(methods) for methods in everything}))
        raise QueryError(f"no method {unknown[0]!r} to compare.", hint=f"Known: {known}.")
    asked = [(setting, under(policy, setting)) for setting in settings(policy, grid or {})]
    served = [
        (setting, methods, rules)
        for setting, one in asked
        for methods in tried
        if (rules := with_methods(one, methods)) is not None
    ]
    if not served:
        raise PolicyError(
            [Problem("require", "no method can serve these requirements.", "Give the columns other roles.")],
            source=policy.source,
        )
    table = prepare(data, _widest([rules for _, _, rules in served]), engine, stage=stage)
    served = [one for one in served if one[1] == own or _within(one[1], table.n)]
    if classify is not None and not _can_be_learned(table.columns.get(classify)):
        raise QueryError(
            f"no quasi-identifier or sensitive column {classify!r} to predict.", hint="Choose one of them."
        )
    linked = any(column.role is Role.QUASI_SENSITIVE for column in policy.attributes.values())
    records = table.records  # what every candidate is measured on: a table without them cannot be compared
    measures = TermMeasures(records, policy.require, own[0]) if linked else None
    with stage("Comparing methods", len(served)) as meter:
        for setting, methods, rules in served:
            seen = table.asking(rules.require)
            yield replace(_tried(methods, rules, seen, classify, measures), setting=setting, policy=rules)
            meter(1)


def _widest(served: Sequence[Policy]) -> Policy:
    """Return the policy under which the table is read once for all candidates: one that forms classes, if there is
    one."""
    return next((rules for rules in served if rules.forms_classes), served[0])


def _within(methods: Sequence[Method], records: int) -> bool:
    """Return whether there are enough records for one group. The policy's own method is not restricted."""
    return all(int(getattr(method, "k", 1)) <= records for method in methods)


def _can_be_learned(column: Column | None) -> bool:
    return column is not None and column.role not in (Role.PLAIN, Role.QUASI_SENSITIVE)


def _tried(
    methods: tuple[Method, ...], policy: Policy, table: Table, classify: str | None, measures: TermMeasures | None
) -> Candidate:
    started, name = perf_counter(), title(methods)
    try:
        demand_bounded(policy)
        draft = settle_draft(table, policy)
        plan = draft.plan
        seconds = perf_counter() - started
        demand_rows(draft, policy)
        demand_margins(draft, policy)
        verdicts, risk = _judged(policy, draft)
        failed = [verdict for verdict in verdicts if verdict.holds is not True]
        if failed:
            why = f"{failed[0].model} on {failed[0].column} does not hold."
            return Candidate(name, methods, seconds, failure=why)
        demand_independence(draft, policy)
        records = plan.records if plan.records is not None and not plan.designs else table.records
        view = view_of(records, plan)
        losses, terms = None if plan.records is None else losses_of(view), None
        if measures is not None:
            more, terms = measures.of(draft, view, policy.methods[0])
            losses = (losses or {}) | more
        loss = (
            terms.query_loss
            if terms is not None
            else count_query_loss(records, view, drawn=drawn_columns(table, records, plan))
        )
        belief = None if measures is not None else right_guesses(draft, view)
    except NorenError as error:
        return Candidate(name, methods, perf_counter() - started, failure=_reason(error))
    shares = [1 / v.achieved for v in risk if v.model == "frequency-l-diversity" and v.achieved > 0]
    return Candidate(
        name,
        methods,
        seconds,
        verdicts=verdicts,
        records=draft.records,
        suppressed=draft.suppressed,
        smallest_class=min((v.achieved for v in risk if v.model == "k-anonymity"), default=0.0),
        worst_share=max(shares, default=0.0),
        belief=belief,
        query_loss=loss,
        losses=losses,
        classification=None if classify is None or plan.designs else _classified(view, classify),
        terms=terms,
        notes=tuple(plan.notes),
    )


def _reason(error: NorenError) -> str:
    """Return one line that says why a candidate publishes nothing."""
    return error.problems[0].message if isinstance(error, PolicyError) else error.message


def _judged(policy: Policy, draft: Draft) -> tuple[list[Verdict], list[Verdict]]:
    """Return the policy's verdicts, and two more that measure the risk, by independent checks."""
    published = hold_cells(draft)
    draft.demand_heads()
    verdicts = judge_draft(draft, published, policy)
    if all(verdict.holds for verdict in verdicts):
        demand_uncertain(replay_methods(published, draft.table.records, policy, draft.plan.facts), policy)
    measured: list[Model] = [
        FrequencyLDiversity(on=statement.name, l=2)
        for statement in published.statements
        if statement.role in (Role.SENSITIVE, Role.SENSITIVE_QUASI_IDENTIFIER) and statement.rows_per_record == 1
    ]
    quasi = [s for s in published.statements if s.role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)]
    if quasi and all(statement.is_key or statement.is_class for statement in quasi):
        measured.append(KAnonymity(k=2))
    risks = check(published, measured, people=names_people(published.store), engine=draft.table.engine)
    draft.forget()
    return verdicts, risks


def _classified(view: GeneralTable, target: str) -> dict[str, float]:
    """Return the loss from training a classifier on the release instead of the original."""
    from noren.metrics.classification import preserved_rules, tree_accuracy

    trees = tree_accuracy(view, target)
    rules = preserved_rules(view, target, support=max(1, view.n // 120))
    return {
        "accuracy_ratio_score": trees.ratio,
        "accuracy_released": trees.released,
        "accuracy_original": trees.original,
        "rules_original": rules.original,
        "rules_preserved": rules.preserved,
    }


QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)


def right_guesses(draft: Draft, view: GeneralTable) -> float | None:
    """Return the share of people whose secret is guessed right; None if single cells do not show secrets.

    The adversary is that of the requirement `belief` and of `audit bayes`: all published columns of a record are read,
    and how they go together is learned from the cells of others. Of all secrets the one guessed best counts.
    """
    secrets = [s for s in draft.statements if s.role.needs_requirement and s.rows_per_record == 1]
    found = [share for s in secrets if not s.hides and (share := _by_class(view, s.name)) is not None]
    hidden = [s.name for s in secrets if s.hides]
    if hidden:
        truth, cells = _sampled(draft)
        readable = [s for s in draft.statements if s.name in cells]
        for name in hidden:
            told = believed(name, readable, cells, truth=truth[name]) if name in truth else None
            if told is not None and told.right is not None:
                found.append(float(told.right.mean()))
    return max(found, default=None)


def _by_class(view: GeneralTable, name: str) -> float | None:
    """Return right guesses for an exactly published secret: the most frequent value of every class."""
    import polars as pl

    if name not in view.columns:
        return None
    keys = [column for column in view.columns.values() if column.role in QUASI and column.name != name]
    cells = {f"k{i}": column.cells[view.keep] for i, column in enumerate(keys)}
    frame = pl.DataFrame(
        {"all": np.zeros(int(view.keep.sum()), bool), **cells, "v": view.columns[name].truth[view.keep]}
    )
    most = frame.group_by(pl.all()).len().group_by(pl.exclude("v", "len")).agg(pl.col("len").max())
    return float(most["len"].sum() / max(1, len(frame)))


# ---------------------------------------------------------------------- level vectors


@dataclass(frozen=True, repr=False, eq=False)
class LevelVectors(Results[LevelVector]):
    """Combinations of levels that meet the requirements, smallest loss first. For the holder only."""

    loss: str = "granularity"

    @property
    def frame(self) -> pl.DataFrame:
        columns: dict[str, type] = dict.fromkeys(self[0].levels if self else (), int)
        rows = (one.levels | {"loss": one.loss, "classes": one.classes, "dropped": one.dropped} for one in self)
        return make_frame(columns | {"loss": float, "classes": int, "dropped": int}, rows)

    def to_dict(self) -> dict[str, Any]:
        return {"loss": self.loss, "levels": [plain(vars(one)) for one in self]}

    def _headline(self) -> str:
        return f"{len(self)} combinations of levels that meet the requirements, by {self.loss} loss" + (
            f"; best {self[0]}" if self else ""
        )


def find_levels(
    data: Any,
    policy: Policy | str | Path,
    *,
    count: int = 10,
    suppression: float | None = None,
    engine: str | Engine | None = None,
    stage: Stage = quiet,
) -> LevelVectors:
    """Return the `count` best combinations of levels that Incognito could publish, by the loss of the policy's method.

    One of them is adopted by `levels = { age = 2, zip = 1 }` in the method. People with several rows are counted when
    it is: the classes may then have to be larger than these.
    """
    policy = read_policy(policy)
    own = next((method for method in policy.methods if isinstance(method, Incognito)), Incognito())
    share = own.suppression if suppression is None else suppression
    rules = policy.with_method(own.model_copy(update={"levels": {}}))
    table = prepare(data, rules, engine, stage=stage)
    records: Any = table.records
    found: Sequence[LevelVector] = best_levels(
        records,
        compiled(records, select_searchable(policy.require)),
        own.loss,
        share,
        own.weights,
        count,
    )
    return LevelVectors(found, own.loss)


def line(vector: LevelVector) -> str:
    """Return what to write into the policy to fix these levels."""
    return f"levels = {value(vector.levels)}"
