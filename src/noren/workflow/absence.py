"""Whether who is missing from a release tells something: judged before it is published, and again with the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.engines.left_out import Members
from noren.models.base import Model
from noren.models.verdict import Verdict
from noren.release.published import Published
from noren.schema.column import Column
from noren.statements import Statement
from noren.workflow.draft import Draft


def left_out(draft: Draft) -> list[Verdict]:
    """The verdict about those whom a draft leaves out, if it leaves out anybody."""
    return [Members.of(draft.table).verdict(~draft.keep)] if draft.suppressed else []


def is_countable(statement: Statement) -> bool:
    """Whether a release itself tells how often every value of a column occurs: it is exact, or in groups."""
    return statement.lists_values and (statement.is_exact or statement.table is not None)


def published_counts(published: Published, statement: Statement) -> NDArray[np.int64]:
    """How often every value of such a column is published."""
    if (table := statement.table) is not None:
        return np.bincount(table.value, table.count, minlength=statement.d).astype(np.int64)
    counts = np.zeros(statement.d, np.int64)
    for batch in published.batches([statement.name]):
        counts += statement.tally(batch[statement.name])
    return counts // published.repeats(statement.name)


def missing_verdict(
    published: Published,
    requirements: Sequence[Model],
    columns: Mapping[str, Column],
    counts: Mapping[str, NDArray[np.int64]],
    places: Mapping[str, NDArray[np.int64]],
) -> Verdict:
    """The verdict about those who are missing from a release, from what the original has more than it.

    Only what is published exactly or in groups can be subtracted; a requirement on anything else stays undecided.
    `places` are those of the published values among those that are counted, where these are more.
    """
    people = published.suppressed
    known: dict[str, NDArray[np.int64]] = {}
    for name in columns:
        if is_countable(statement := published.column(name)):
            shown = published_counts(published, statement)
            if name in places:
                shown = np.bincount(places[name], shown, minlength=len(counts[name])).astype(np.int64)
            lost = counts[name] - shown
            if (lost >= 0).all() and int(lost.sum()) == people:
                known[name] = lost
    codes = {name: np.repeat(np.arange(len(found)), found) for name, found in known.items()}
    rest = {name: np.repeat(np.arange(len(c)), c - known[name]) for name, c in counts.items() if name in known}
    asked = [model for model in requirements if model.judges_left_out]
    settled = [model for model in asked if model.about == "classes" or all(name in known for name in model.on)]
    whole = people + max([0, *map(len, rest.values())])
    records = Records(whole, columns, {name: np.concatenate([codes[name], rest[name]]) for name in known})
    found = Members(records, settled).verdict(np.arange(whole) < people)
    if found.holds and len(settled) < len(asked):
        open_ones = ", ".join(dict.fromkeys(model.model for model in asked if model not in settled))
        text = f"{found.statement}, as far as the release shows what they had; not settled: {open_ones}"
        return replace(found, holds=None, statement=text)
    return found
