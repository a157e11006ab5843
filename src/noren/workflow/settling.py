"""Finds a draft that meets all requirements; if people have several records, with larger classes as necessary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from noren.engines import Plan, Table
from noren.engines.left_out import Members
from noren.errors import PolicyError, RequirementNotMet
from noren.methods.parts import together
from noren.models import KAnonymity
from noren.models.base import Judgement, Model
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.progress import Meter, Stage, quiet, silent
from noren.release.published import Published
from noren.release.store import MemoryStore, PeopleStore, Store, names_people
from noren.statements import concat
from noren.statements.batch import PERSON
from noren.workflow.draft import Draft
from noren.workflow.mechanism import used_methods, with_mechanism
from noren.workflow.over_rows import advice, judge_people, published_rows
from noren.workflow.verify import demand

GROWTH = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
"""How many times as large classes are made, where people have several records, until enough people are in each."""
STRICTER = 0.15
"""By which power of that a requirement that compares with the whole table becomes stricter: the people of a class are
not spread as its records are."""


def decide_plan(table: Table, policy: Policy, *, stage: Stage = quiet) -> Plan:
    """Return what every method of the policy decides for its columns, as one plan."""
    try:
        return together(table, policy.parts, stage=stage)
    except PolicyError as error:
        raise PolicyError(error.problems, source=policy.source) from None


def draft_plan(table: Table, plan: Plan, policy: Policy, **secrets: Any) -> Draft:
    """Return the draft of a plan, within the permitted suppression."""
    most = max((getattr(method, "suppression", 0.0) for method in policy.methods), default=0.0)
    return Draft(table, plan, most=most, **secrets)


def settle_draft(table: Table, policy: Policy, *, stage: Stage = quiet, **secrets: Any) -> Draft:
    """Return a draft that meets the requirements. If people have several records, classes grow until each has enough
    people."""
    if table.people is None or not policy.forms_classes:
        return draft_plan(table, decide_plan(table, policy, stage=stage), policy, **secrets)
    searched_for = policy.model_copy(update={"require": tuple(m for m in policy.require if not m.of_mechanism)})
    for factor in GROWTH:
        grown = replace(table, requirements=tuple(larger(policy.require, factor)))
        rules = policy.model_copy(update={"require": grown.requirements})
        try:
            plan = decide_plan(grown, rules, stage=stage)
        except (PolicyError, RequirementNotMet):
            if factor == 1:
                raise
            continue  # larger classes are beyond the method or the table
        draft = draft_plan(table, plan, policy, **secrets)
        verdicts = judge_draft(draft, hold_cells(draft), searched_for)
        draft.forget()
        if all(verdict.holds is True for verdict in verdicts):
            return draft
    demand(verdicts, advice(verdicts))
    return draft


def larger(requirements: Sequence[Model], factor: float) -> list[Model]:
    """Return the requirements with classes that many times as large, and correspondingly stricter closeness."""
    least = max([2, *(model.least_class_size for model in requirements)])
    out = [
        model.model_copy(update={"k": ceil(model.least_class_size * factor)})
        if model.least_class_size > 1
        else model.model_copy(update={model.parameter: model.required / factor**STRICTER})
        if model.relative and factor > 1
        else model
        for model in requirements
    ]
    counted = any(model.least_class_size > 1 for model in requirements)
    return out if counted or factor == 1 else [*out, KAnonymity(k=ceil(least * factor))]


def hold_cells(draft: Draft) -> Published:
    """Return the draft with its cells in memory, and the person of each row if people have several."""
    table = draft.table
    made = table.engine.apply(table.source, draft.reading, draft) if draft.reading.columns else draft.make_cells()
    cells = concat(list(made))
    store: Store = MemoryStore({name: part for name, part in cells.items() if name != PERSON})
    if PERSON in cells:
        store = PeopleStore(store, cells[PERSON].data)  # type: ignore[attr-defined]
    return draft.as_published(store)


def judge_draft(draft: Draft, published: Published, policy: Policy, meter: Meter = silent) -> list[Verdict]:
    """Return the verdicts on the cells of a draft: on classes and people, suppressed people, and the mechanism."""
    require, several = policy.require, names_people(published.store)
    make = partial(Judgement.of, published.by_name, require, draft.overall(), people=several)
    found = draft.table.engine.judge(published, make, meter=meter)
    if draft.table.people is not None and draft.plan.records is not None:  # people have several rows, in classes
        records = draft.table.records.over(draft.plan.records.columns)  # with the hierarchies that the method made
        found = judge_people(found, published, published_rows(records, draft.keep), require)
    if any(model.of_mechanism for model in require):
        used = used_methods(policy, draft.plan.facts)
        found = with_mechanism(found, published, draft.table.records, require, used)
    return [*found, *left_out(draft)]


def left_out(draft: Draft) -> list[Verdict]:
    """Return the verdict about the people whom a draft suppresses, if there are any."""
    return [Members.of(draft.table).verdict(~draft.keep)] if draft.suppressed else []
