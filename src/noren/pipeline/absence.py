"""Whether who is missing from a release tells something: judged before it is published, and again with the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from noren.models.base import Model
from noren.models.verdict import Verdict
from noren.pipeline.draft import Draft
from noren.release.published import Published
from noren.schema.column import Column
from noren.table import Records
from noren.table.left_out import LEFT_OUT, Members


def left_out(draft: Draft) -> list[Verdict]:
    """The verdict about those whom a draft leaves out, if it leaves out anybody."""
    return [Members.of(draft.table).verdict(~draft.keep)] if draft.suppressed else []


def missing_counts(published: Published, name: str, truth: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
    """How often those who are missing have every value, given how often the original has it, and whether that is
    exact. Values that the release lists are counted in it; where it shows sets or general values they are not."""
    statement = published.column(name)
    table = statement.table
    if table is not None:
        seen = np.bincount(table.value, table.count, minlength=statement.d).astype(np.int64)
    elif statement.is_exact:
        seen = sum((statement.tally(batch[name]) for batch in published.batches([name])), np.zeros(statement.d, int))
    else:
        return np.zeros(len(truth), np.int64), False
    lost = truth - np.append(seen, np.zeros(len(truth) - len(seen), np.int64))
    return lost, bool((lost >= 0).all()) and int(lost.sum()) == published.suppressed


def missing_verdict(
    published: Published,
    requirements: Sequence[Model],
    columns: Mapping[str, Column],
    counts: Mapping[str, NDArray[np.int64]],
) -> Verdict:
    """The verdict about those who are missing from a release, from what the original has more than it.

    Only what is published exactly or in groups can be subtracted; a requirement on anything else stays undecided.
    """
    people = published.suppressed
    lost = {name: missing_counts(published, name, counts[name]) for name in columns}
    known = {name: found for name, (found, exact) in lost.items() if exact}
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
    return replace(found, model=LEFT_OUT)
