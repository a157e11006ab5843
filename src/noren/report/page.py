"""One self-contained HTML page for a data protection officer, and the same figures as JSON.

From the release alone the page is for anybody. With the original, or from a run of `anonymize`, it is holder-only: it
says so, and it is never written inside a release directory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from noren.estimates.counts.estimate import Estimate
from noren.files import refuse_target, write_whole
from noren.policy.policy import Policy
from noren.progress import Stage, quiet
from noren.release.release import Release, open_release
from noren.report import losses, truth
from noren.report.attacks import each_attack, overview
from noren.report.content import content_of
from noren.report.material import Material, from_outcome, gather
from noren.report.render import MANY_COLUMNS, Line, columns, counted, render_page, verdicts
from noren.report.truth import in_words
from noren.workflow.anonymize import Outcome

GROUNDS = {
    "the release alone": "Anybody can recompute it from the published files.",
    "the published design": (
        "It follows from the design stated in the release; you trust the holder that cells were drawn that way."
    ),
    "an estimate from the release": "It rests on the stated design and on estimated frequencies of the values.",
    "the original": "It was computed with the original table; only the holder can repeat it.",
}
"""What a verdict rests on, and whom a reader must trust."""


SECTIONS = {
    "truth": "Summary on one page",
    "published": "What was published",
    "holds": "What holds",
    "adversary": "What an adversary still learns",
    "losses": "What an analyst loses",
    "left-out": "What was suppressed",
    "recipient": "What a recipient can learn",
    "limits": "What is not protected",
    "reproduce": "How to check and reproduce",
}
"""The parts of the page, each with a template of its name."""


@dataclass(frozen=True)
class Page:
    """A report: the page, its figures as data, and whether it is for the holder only."""

    html: str = field(repr=False)
    content: dict[str, Any] = field(repr=False)
    holder_only: bool
    release: Path | None = None
    """The directory of the release, into which a page is never written."""

    @property
    def json(self) -> str:
        """Return all figures of the page as JSON text."""
        return json.dumps(self.content, ensure_ascii=False, indent=1) + "\n"

    def save(self, path: str | Path) -> Path:
        """Write the page (.html) or its figures (.json) to a new file outside any release.

        A holder-only page is readable by its owner alone.
        """
        target = Path(path)
        refuse_target(target, self.release)
        text = self.json if target.suffix.lower() == ".json" else self.html
        write_page(target, text, private=self.holder_only)
        return target


def make_report(
    release: Release | str | Path,
    policy: Policy | str | Path | None = None,
    *,
    original: Any = None,
    attacks: Sequence[str] | None = None,
    stage: Stage = quiet,
    date: datetime | None = None,
) -> Page:
    """Make the report of a release: what was published, which requirements hold, what an adversary gains and what an
    analyst loses.

    Without the original the report contains what anybody can compute. `attacks` lists the attacks to run, all of which
    must apply; by default every attack that applies is run, and the page explains why others do not apply.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": ["cook", "clerk", "miner", "nurse"] * 10})
    >>> columns, diverse = {"town": "plain", "job": "sensitive"}, nr.models.FrequencyLDiversity(on="job", l=2)
    >>> release = nr.anonymize(people, nr.Policy(attributes=columns, require=[diverse]))
    >>> page = nr.make_report(release, attacks=[])
    >>> page.holder_only
    False
    >>> page.content["guarantees"][0]["promise"]
    'For every person at least 2 values of job remain possible, so somebody who thinks all values equally likely \
believes none with more than 1/2.'
    """
    return made(gather(open_release(release), policy, original, attacks, date or _now(), stage))


def holder_page(
    outcome: Outcome,
    estimate: Estimate | None = None,
    *,
    policy: Policy | str | Path | None = None,
    original: Any = None,
    attacks: Sequence[str] | None = (),
    stage: Stage = quiet,
    date: datetime | None = None,
) -> Page:
    """Make the report of a run of `anonymize` from what the run knows. Attacks are run only on request.

    `attacks=None` runs all that apply, up to a number of records.
    """
    return made(
        from_outcome(
            outcome, date or _now(), estimate=estimate, policy=policy, original=original, attacks=attacks, stage=stage
        )
    )


def holder_report(outcome: Outcome, estimate: Estimate | None = None) -> str:
    """Return the holder's report as HTML text."""
    return holder_page(outcome, estimate).html


def made(material: Material) -> Page:
    """Make the page of some material."""
    content = content_of(material)
    text = laid_out(content, material.estimate)
    return Page(text, content, material.holder_only, material.release.directory)


def laid_out(content: Mapping[str, Any], estimate: Estimate | None) -> str:
    """Render the content as HTML; empty parts are omitted."""
    wide = len(content["published"]["columns"]) > MANY_COLUMNS
    empty = {"left-out": not content["left_out"], "recipient": estimate is None}
    return render_page(
        "report.html",
        holder=content["holder_only"],
        title=content["title"],
        contents=[(name, title) for name, title in SECTIONS.items() if not empty.get(name)],
        content=content,
        short=in_short(content),
        truth_table=truth.table(content["truth"]),
        truth_rest=truth.remainder(content["truth"]),
        adversaries=truth.adversaries(content["truth"]),
        columns=columns(content["published"]["columns"]),
        verdicts=verdicts(content["verdicts"]),
        counted=counted,
        grounds=GROUNDS,
        overview=overview(content["attacks"]["run"]),
        attacks=each_attack(content["attacks"]["run"], wide),
        loss=losses.losses(content["losses"]["columns"], wide),
        recipient=None if estimate is None else losses.recipient(estimate),
    )


def write_page(path: Path, text: str, *, private: bool = True) -> None:
    """Write the page; a private one is readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode(errors="replace"), private=private)


def _now() -> datetime:
    return datetime.now(UTC)


def in_short(content: Mapping[str, Any]) -> list[Line]:
    """Summarise the release: how much was published, whether all checks hold, which adversaries are covered and which
    are not."""
    published, verdicts = content["published"], content["verdicts"]
    bad = [v for v in verdicts if v["holds"] is False]
    unsure = [v for v in verdicts if v["holds"] is None]
    if not verdicts:
        found = "Nothing was required of the release, so nothing was checked."
    elif bad:
        found = f"{len(bad)} of {len(verdicts)} checks fail: do not rely on this release."
    elif unsure:
        found = f"{len(unsure)} of {len(verdicts)} checks cannot be decided without the original; the others hold."
    else:
        checks = f"All {len(verdicts)} checks hold" if len(verdicts) > 1 else "The one check holds"
        found = f"{checks}, on the published cells."
    return [
        Line(f"Published: {published['records']:,} records with {len(published['columns'])} columns."),
        Line(found),
        *(Line(one["sentence"]) for one in content["replayed"]),
        *in_words(content["truth"]),
        Line("Read the section on what is not protected before you publish or use the data."),
    ]
