"""The margins that a policy adds to a release: counted in one pass, noised, and nothing else of them kept.

The unit is a person. How many people there are is public, so that two tables are neighbours if one person's rows are
replaced by another's: the counts change by twice the rows of a person at most. Nothing else that depends on the data
may decide what is counted: nobody may have been left out to protect the others, and nobody has more rows than declared.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError, PolicyError, Problem
from noren.policy.options import Margin
from noren.policy.policy import Policy
from noren.release.manifest import MOST_MARGIN_CELLS, PublishedMargin
from noren.workflow.draft import Draft


def with_more(people: NDArray[np.int64] | None, most: int) -> int:
    """How many people have more rows than this; nobody where every row is a person of its own."""
    return 0 if people is None else int((np.bincount(people) > most).sum())


def demand_rows(draft: Draft, policy: Policy) -> None:
    """Refuse a release in which somebody has more rows than the policy declares: every error would be too small."""
    most, people = policy.people.most_rows, draft.table.people
    if most is None or people is None:
        return
    if many := with_more(people[draft.keep], most):
        whose = "1 person has" if many == 1 else f"{many:,} people have"
        raise DataError(
            f"{draft.table.name}: {whose} more rows than [people] most_rows = {most} permits.",
            hint="Raise most_rows to what is known without this table, or keep fewer rows of everybody who has more.",
        )


def noised_margins(draft: Draft, policy: Policy) -> tuple[PublishedMargin, ...]:
    """The margins of a release, each noised for its own epsilon."""
    if not policy.margins:
        return ()
    from noren.designs.central import noised

    demand_margins(draft, policy)
    return tuple(
        PublishedMargin(
            of=margin.of,
            epsilon=margin.epsilon,
            sensitivity=margin.sensitivity,
            counts=tuple(noised(counts, margin.sensitivity, margin.epsilon).ravel().tolist()),
        )
        for margin, counts in zip(policy.margins, _counted(draft, policy.margins), strict=True)
    )


def demand_margins(draft: Draft, policy: Policy) -> None:
    """Refuse margins that the noise would not protect, or that no estimate could use."""
    problems = []
    for number, margin in enumerate(policy.margins, 1):
        where = f"margins[{number}]"
        for name in margin.of:
            statement = draft.by_name[name]
            if statement.column.is_open or not (statement.is_exact or statement.design is not None):
                message = f"{name!r} is {statement.words}, and its values are not listed in the release."
                hint = "Name columns that are drawn or published exactly."
                problems.append(Problem(f"{where}.of", message, hint))
        if problems:
            continue
        cells = prod(draft.by_name[name].d for name in margin.of)
        if cells > MOST_MARGIN_CELLS:
            message = f"{' x '.join(margin.of)} has {cells:,} cells, more than {MOST_MARGIN_CELLS:,}."
            problems.append(Problem(f"{where}.of", message, "Name fewer columns."))
        if many := with_more(draft.table.people, margin.rows):
            message = f"{many:,} people have more than rows = {margin.rows} rows."
            problems.append(Problem(f"{where}.rows", message, "Raise rows, or keep fewer rows of them."))
    if policy.margins and draft.suppressed:
        message = "people were left out to protect the others, so that no noise hides one person's part in the margins."
        problems.append(Problem("margins", message, "Set suppression = 0, or publish no margins."))
    if problems:
        raise PolicyError(problems, source=policy.source)


def _counted(draft: Draft, margins: tuple[Margin, ...]) -> list[NDArray[np.int64]]:
    """The exact counts, which leave this module only with noise."""
    out = []
    for margin in margins:
        shape = tuple(draft.by_name[name].d for name in margin.of)
        rows, times = draft.table.histogram(margin.of)
        values = {name: draft.table.columns[name].domain.values for name in margin.of}
        places = [draft.published_codes(name, values[name])[rows[:, j]] for j, name in enumerate(margin.of)]
        counts = np.bincount(np.ravel_multi_index(tuple(places), shape), times, prod(shape))
        out.append(counts.astype(np.int64).reshape(shape))
    return out
