"""What the manifest of a release says about how it was made: an allow-list, and nothing computed from exact data."""

from __future__ import annotations

from collections.abc import Mapping

from noren import __version__
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.release.manifest import Manifest, PublishedMargin, UsedMethod, VerdictEntry
from noren.release.published import Published


def make_manifest(
    policy: Policy,
    published: Published,
    verdicts: list[Verdict],
    memoised: bool,
    rows_are_people: bool = True,
    facts: Mapping[str, int | str] | None = None,
    margins: tuple[PublishedMargin, ...] = (),
) -> Manifest:
    """The manifest from its allow-list. A verdict that rests on the original publishes no figure."""
    mixed = len(policy.methods) > 1
    return Manifest(
        noren=__version__,
        title=policy.title,
        records=published.records,
        suppressed=published.suppressed,
        rows_are_people=rows_are_people,
        most_rows=None if rows_are_people else policy.people.most_rows,
        sample=policy.sample.share,
        weight=policy.weight,
        margins=margins,
        columns=published.statements,
        requirements=tuple(model.model_dump(mode="json") for model in policy.require),
        methods=tuple(
            UsedMethod(
                name=part.method.name,
                on=part.columns if mixed else (),
                **(facts or {} if part.method.forms_classes else {}),
            )
            for part in policy.parts
        ),
        randomness="memoised" if memoised else "fresh",
        mechanism="ignored" if policy.mechanism == "ignored" else None,
        verdicts=tuple(
            VerdictEntry(
                model=v.model,
                column=v.column,
                required=v.required,
                achieved=None if v.basis == "the original" else v.achieved,
                holds=v.holds is True,
                basis=v.basis,
            )
            for v in verdicts
        ),
    )
