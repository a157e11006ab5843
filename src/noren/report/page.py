"""One self-contained HTML page for the holder: what was published, what holds, what an adversary still learns.

It is computed from the original and therefore holder-only: it is never written inside a release directory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from html import escape
from math import exp, isinf, tanh
from pathlib import Path

from noren import __version__
from noren.analysis.estimate import Estimate
from noren.designs.any import Design
from noren.designs.decoys import DecoyDesign
from noren.designs.posterior import mean_true_probability, worst_confidence
from noren.methods.base import Suppressed
from noren.pipeline.anonymize import HolderFacts, Outcome
from noren.release.package import DESCRIPTOR, checksum

WORDS = {True: "holds", False: "fails", None: "undecided"}
ORIGINS = {"policy": "declared", "bins": "bins", "data": "data", "hierarchy": "hierarchy"}

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; color: #1b1f24; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid #d0d7de; padding-bottom: .2rem; }
.mark { display: inline-block; background: #8b2635; color: #fff; padding: .1rem .6rem; border-radius: .2rem;
        font-weight: 600; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-size: .93rem; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #d0d7de; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
code { background: #f3f4f6; padding: 0 .25rem; word-break: break-all; }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } h2 { break-after: avoid; }
               table, figure { break-inside: avoid; } }
"""


def holder_report(outcome: Outcome, estimate: Estimate | None = None) -> str:
    """The page as HTML text."""
    release, facts = outcome.release, outcome.facts
    title = release.manifest.title or "Release report"
    parts = [
        f"<h1>{escape(title)}</h1>",
        '<p><span class="mark">Holder only</span> Computed from the original table. Do not publish this page.</p>',
        "<h2>What was published</h2>",
        _summary(outcome),
        _columns(facts, outcome),
        "<h2>What holds</h2>",
        "<p>Every line was checked on the published cells, by code that took no part in making them.</p>",
        _verdicts(facts),
        "<h2>What an adversary still learns</h2>",
        _adversary(facts) if facts.designs else _classes(facts),
        *(["<h2>What was left out</h2>", _left_out(facts)] if facts.terms else []),
        "<h2>What is not protected</h2>",
        _limits(facts, outcome),
    ]
    if estimate is not None:
        parts += ["<h2>What a recipient can learn</h2>", _figure(estimate)]
    parts += ["<h2>How to check and reproduce</h2>", _reproduce(outcome)]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def write_page(path: Path, text: str) -> None:
    """Write the page aside, then rename it, readable by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        texts = [f"<{tag}{scope}{' class=n' if i in numbers else ''}>{c}</{tag}>" for i, c in enumerate(cells)]
        return "<tr>" + "".join(texts) + "</tr>"

    head = line([escape(cell) for cell in header], "th")
    body = "\n".join(line([escape(cell) for cell in row], "td") for row in rows)
    return f"<table><thead>{head}</thead><tbody>\n{body}\n</tbody></table>"


def _summary(outcome: Outcome) -> str:
    facts = outcome.facts
    dropped = f" {facts.dropped:,} records were dropped for missing values." if facts.dropped else ""
    if facts.suppressed:
        share = facts.suppressed / (facts.records + facts.suppressed)
        dropped += f" {facts.suppressed:,} records ({share:.2%}) were suppressed to protect the others."
    order = "The rows are in a random order that has nothing to do with the original's."
    if not facts.designs:
        decoys = (
            "General values and groups were chosen for these records together: a second release of the same people "
            "would choose others, and the two could be intersected."
        )
    elif facts.memoised:
        decoys = "Decoys are memoised: a person with the same value keeps the same decoys in every release."
    else:
        decoys = (
            "Decoys are fresh: a second release of the same people would draw new ones, and the two could be "
            "intersected. Use a secret and a record key before you publish the same people again."
        )
    return f"<p>{facts.records:,} records.{dropped} Identifiers were dropped. {order} {decoys}</p>"


def _columns(facts: HolderFacts, outcome: Outcome) -> str:
    rows = []
    for entry in outcome.release.manifest.columns:
        design = facts.designs.get(entry.name)
        form = "as it is" if design is None else f"a set of {design.eta} of {design.d} values"
        if entry.form == "node":
            form = "as general values"
        if entry.form == "terms":
            form = "as a set of terms, some left out"
            left = [part for part in facts.terms if entry.name in part.columns]
            if not any(part.removed for part in left):
                form = "as a set of terms, in full"
        if entry.form == "group":
            form = f"as the numbers of {entry.groups:,} groups; a second table lists each group's values"
        if entry.form == "member" and design is not None:
            form = f"{design.eta} shuffled rows, one per value of a set out of {design.d} values"
        column = facts.columns[entry.name]
        origin = "open" if column.domain is None else ORIGINS[column.domain.source]
        named = f"; {column.rare} shared by fewer than five records" if column.rare and origin == "data" else ""
        rows.append([entry.name, entry.role.value, form, origin + named])
    return _table(("Column", "Role", "Published", "Domain from"), rows)


def _verdicts(facts: HolderFacts) -> str:
    rows = [
        [v.column, v.model, f"{v.required:g}", f"{v.achieved:.4g}", WORDS[v.holds], v.statement, v.basis]
        for v in facts.verdicts
    ]
    header = ("Column", "Requirement", "Asked", "Found", "Verdict", "In words", "Ground")
    return _table(header, rows, (2, 3))


def adversary_row(name: str, design: Design, facts: HolderFacts) -> list[str]:
    """What someone who knows the overall distribution makes of one set of a column."""
    counts = facts.columns[name].counts
    share = float(counts.max() / counts.sum())
    if not isinstance(design, DecoyDesign):
        uniform, informed = design.posterior_summary(), design.posterior_summary(counts / counts.sum())
        believed = f"{uniform.mean:.3f} (worst {uniform.worst:.3f})"
        return [name, f"{share:.3f}", believed, f"{informed.mean:.3f}", f"{informed.worst:.4f}", "no bound"]
    if design.p == 1.0:
        occurring = int((counts > 0).sum())
        worst = worst_confidence(counts, min(design.eta, occurring))
        guess = mean_true_probability(counts, design.eta)
        return [name, f"{share:.3f}", f"{1 / design.eta:.3f}", f"{guess:.3f}", f"{worst:.4f}", "no bound"]
    bound = tanh(design.epsilon / 4) if not isinf(design.epsilon) else 1.0
    worst = share * exp(design.epsilon) / (1 + share * (exp(design.epsilon) - 1))
    epsilon = f"epsilon {design.epsilon:.3g}, total variation at most {bound:.3g}"
    return [name, f"{share:.3f}", "-", "-", f"{worst:.4f} at most", epsilon]


def _adversary(facts: HolderFacts) -> str:
    rows = [adversary_row(name, design, facts) for name, design in facts.designs.items()]
    header = (
        "Column",
        "Most common value before",
        "Uniform prior, after",
        "Mean P(true value) after",
        "Worst P(a value) after",
        "Any prior",
    )
    text = (
        "<p>An adversary who knows how common the values are, and sees one person's set, ends with these "
        "probabilities. Sets of decoys (p = 1) keep the prior odds inside the set: the confidence is 1/l only for "
        "someone who thinks all values equally likely. Closeness (p &lt; 1) bounds the gain for any prior; its epsilon "
        "is one of local differential privacy, and epsilons add over columns.</p>"
    )
    return text + _table(header, rows, (1, 2, 3, 4))


def _classes(facts: HolderFacts) -> str:
    """What the classes of a generalised release leave, and what they cost."""
    text = (
        "<p>An adversary who knows a person's quasi-identifiers finds the class of records that could be the person's, "
        "and believes each of its secrets as often as it occurs there. The verdicts above bound that for every class. "
        "The bound is for someone who knows nothing else: who knows how the method works, or that some values of the "
        "class are impossible for the person, can rule records out.</p>"
    )
    if "belief_rise_max_loss" in facts.losses:
        mean, most = (facts.losses[f"belief_rise_{name}_loss"] for name in ("mean", "max"))
        text += (
            "<p>Whoever also has the knowledge table links the published terms to labels. The belief in the label that "
            f"gains most rises by {mean:.3f} for the average record and by {most:.3f} at most, compared with what was "
            "believed before.</p>"
        )
    rows = [[name.replace("_", " "), f"{figure:,.4g}"] for name, figure in facts.losses.items()]
    cost = "<p>What it cost; scores are better when large, losses when small.</p>"
    return text + cost + _table(("Measure", "Found"), rows, (1,))


def _left_out(facts: HolderFacts) -> str:
    """Which terms are not published, and how sure it is that no cheaper choice exists."""
    words = (
        "<p>Terms that a knowledge table links to labels were left out where a group would otherwise have revealed too "
        "much. Leaving a term out costs more the fewer terms its record has left: a group's cost is 0 if it keeps all "
        "terms and 1 if it loses all.</p>"
    )
    texts = [_left_out_words(part) for part in facts.terms]
    header = ("Columns", "Search", "Groups", "Searched", "Proven", "Mean cost", "Gap", "Left out", "Of terms")
    rows = [
        [
            ", ".join(part.columns),
            part.search,
            f"{len(part.cost):,}",
            f"{int(part.searched.sum()):,}",
            f"{int((part.searched & part.optimal).sum()):,}",
            f"{part.mean_cost:.4f}",
            "not known" if isinf(part.gap) else f"{part.gap:.1%}",
            f"{part.removed:,}",
            f"{part.entries:,}",
        ]
        for part in facts.terms
    ]
    return words + "".join(texts) + _table(header, rows, range(2, 9))


def _left_out_words(part: Suppressed) -> str:
    names, groups, searched = escape(", ".join(part.columns)), len(part.cost), int(part.searched.sum())
    proven = int((part.searched & part.optimal).sum())
    if not searched:
        return (
            f"<p>{names}: all {groups:,} groups met the requirement with all their terms, so nothing was left out.</p>"
        )
    share = part.removed / part.entries if part.entries else 0.0
    text = (
        f"<p>{names}: {groups - searched:,} of {groups:,} groups met the requirement with all their terms. The other "
        f"{searched:,} lost {part.removed:,} of all {part.entries:,} terms together ({share:.1%}). "
    )
    if proven == searched:
        return f"{text}For each of them it is proven that no cheaper removal would do.</p>"
    text += f"For {proven:,} of them it is proven that no cheaper removal would do; the others ran out of time. "
    if isinf(part.gap):
        return f"{text}How far from the cheapest they are is not known.</p>"
    return f"{text}The mean cost of all groups is at most {part.gap:.1%} above the least possible.</p>"


def _limits(facts: HolderFacts, outcome: Outcome) -> str:
    plain = [e.name for e in outcome.release.manifest.columns if e.form in ("value", "open")]
    hidden = "the truth inside the sets" if facts.designs else "which of the class's secrets is the person's"
    items = [
        f"Columns published as they are: {escape(', '.join(plain)) or 'none'}. Whoever knows them can find a person's "
        f"row; what is hidden is {hidden}.",
        "Whether a person is in the table at all.",
    ]
    if facts.designs:
        items += [
            "What several columns' sets tell together, where the columns are correlated.",
            "People who are in two releases with fresh decoys: the sets can be intersected.",
        ]
    else:
        items += [
            "People who are in two releases: their classes can be intersected.",
            "What an adversary infers from knowing the method itself (minimality attacks).",
        ]
    if facts.terms:
        items.append(
            "Terms as an adversary would link them with another knowledge table than the one the policy gives: what "
            "that table does not know, nobody here has counted."
        )
    items += [escape(note) for note in facts.notes]
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _figure(estimate: Estimate) -> str:
    import vl_convert

    svg = vl_convert.vegalite_to_svg(estimate.plot().to_dict())
    by = escape(" and ".join(estimate.by))
    return (
        f"<p>Estimated from the release alone ({escape(estimate.estimator)}, {estimate.error_bars}; assumes "
        f'{escape(estimate.assumes)}).</p><figure role="img" aria-label="Estimated records by {by}">{svg}</figure>'
    )


def _reproduce(outcome: Outcome) -> str:
    path = outcome.release.path
    lines = [f"<p>Made with noren {escape(__version__)}."]
    if path is not None:
        lines.append(
            f"Checksum of {DESCRIPTOR}: <code>sha256:{checksum(path / DESCRIPTOR)}</code>. Publish it through another "
            "channel if recipients must be able to tell your release from a forged one."
        )
        lines.append(f"Anyone can recheck the claims with <code>noren verify {escape(path.name)}</code>.")
    timing = ", ".join(f"{escape(name)} {value:.2f} s" for name, value in outcome.facts.seconds.items())
    return " ".join(lines) + f"</p><p>Time: {timing}.</p>"
