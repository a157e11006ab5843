"""How many rows a person has, against how many are declared: recipients' errors and the noise of margins rest on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.release.release import Release
from noren.workflow.draft import Draft
from noren.workflow.truth import Truth

MODEL, ALL = "most-rows", "all columns"


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


def asked_rows(release: Release, policy: Policy) -> list[Verdict]:
    """A failing verdict where a release declares another bound than its policy does."""
    asked, said = policy.people.most_rows, release.manifest.most_rows
    if asked == said or release.manifest.rows_are_people:
        return []
    text = f"the release says {_words(said)} of how many rows a person has at most, the policy {_words(asked)}"
    ground, records = "the release alone", release.records
    return [Verdict(MODEL, ALL, float(asked or 0), float(said or 0), False, ground, records, records, text)]


def kept_rows(release: Release, policy: Policy, truth: Truth) -> list[Verdict]:
    """A verdict on whether nobody has more rows in the original than the release declares; none where it does not, or
    where the policy does not say whose rows are whose.

    Of a sample, and where people were left out, those with more may be the ones who are not in the release.
    """
    most = release.manifest.most_rows
    if most is None or not policy.people.key:
        return []
    people = truth.table.people
    many = with_more(people, most)
    found = 1 if people is None else int(np.bincount(people).max(initial=0))
    left = release.manifest.sample is not None or release.suppressed > 0
    holds = True if not many else None if left else False
    text = f"people of the original with more rows than the release declares: {many:,}" if many else ""
    breaches = many if holds is False else 0
    return [Verdict(MODEL, ALL, float(most), float(found), holds, "the original", release.records, breaches, text)]


def _words(most: int | None) -> str:
    return "nothing" if most is None else str(most)
