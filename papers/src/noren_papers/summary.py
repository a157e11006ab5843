"""The summary of a paper, for people: every claim with its verdict first, then figure by figure how it was found."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from noren.files import write_whole
from noren.report.render import render_page
from noren_papers.base import Figure, Paper
from noren_papers.claims import CANNOT, FAILS, HOLDS, VERDICTS, WORDS
from noren_papers.write import Record

OURS_WORDS = 45
"""Words that a summary in Markdown gives to what ours adds to a figure."""
TEMPLATES = Path(__file__).parent / "templates"


def write_summary(paper: Paper, target: Path, records: Sequence[Record]) -> None:
    """summary.md and summary.html over the figures that a folder holds."""
    write_whole(target / "summary.md", markdown(paper, records).encode())
    write_whole(target / "summary.html", page(paper, target, records).encode())


PLURALS = {HOLDS: "hold", FAILS: "do not hold", CANNOT: "cannot be measured here"}


def counted(records: Sequence[Record]) -> str:
    """How many claims hold, hold mostly, and so on; verdicts that no claim has are left out."""
    found = [answer["verdict"] for record in records for answer in record.answers]
    parts = [(found.count(verdict), verdict) for verdict in VERDICTS]
    return ", ".join(f"{n} {verdict if n == 1 else PLURALS.get(verdict, verdict)}" for n, verdict in parts if n)


def opening(paper: Paper, records: Sequence[Record]) -> list[str]:
    """What was run, on what, and what is missing."""
    claims = sum(len(record.answers) for record in records)
    words = "; ".join(f"{word}: {meaning}" for word, meaning in WORDS.items())
    lines = [
        f"{claims} claims of {len(records)} figures and tables were measured: {counted(records)}.",
        "All comparisons true: holds; three quarters: mostly; more than a quarter: in part; some: hardly; none: does "
        f"not hold; tied or within two standard errors in more than half: undecided. {words.capitalize()}.",
    ]
    quick = [record for record in records if record.quick]
    if len(quick) == len(records):
        lines.append(
            "This was a quick run: smaller tables and few repetitions. Its verdicts are a check, not a finding."
        )
    elif quick:
        lines.append("From quick runs (smaller tables, few repetitions): " + _headings(paper, quick) + ".")
    if generated := {one["name"] for record in records for one in record.data if one["origin"] == "generated"}:
        lines.append("Generated tables, not the paper's data: " + ", ".join(sorted(generated)) + ".")
    present = {record.key for record in records}
    if absent := [figure.heading for figure in paper.figures if figure.key not in present]:
        lines.append("Not run yet: " + ", ".join(absent) + ".")
    return lines


def _headings(paper: Paper, records: Sequence[Record]) -> str:
    return ", ".join(_figure(paper, record).heading for record in records)


def _figure(paper: Paper, record: Record) -> Figure:
    figure = paper.figure(record.key)
    assert figure is not None
    return figure


def markdown(paper: Paper, records: Sequence[Record]) -> str:
    """What was found, in short: the sentences behind a verdict, parameters and data stand in the figure's record."""
    out = [f"# {paper.title}", "", paper.source, ""]
    for line in opening(paper, records):
        out += [line, ""]
    for record in records:
        figure = _figure(paper, record)
        out += ["", f"## {figure.heading}: {figure.title}", ""]
        out += [f"![{figure.heading}]({name})\n" for name in record.pictures]
        out += ["| the paper says | true in |", "| --- | --- |"]
        out += [f"| {_cell(a['claim'])} | **{a['verdict']}** {a['count']} |" for a in record.answers]
        out += ["", f"**Ours.** {shortened(record.ours)}", ""]
        out += [f"[How]({figure.name}.json), {_links(record.sheets)}. {_run(record)}"]
    return "\n".join(out).rstrip() + "\n"


def shortened(text: str) -> str:
    """Whole sentences, or parts of them between semicolons, as many as fit; the rest stands in record and page."""
    out: list[str] = []
    for sentence in re.split(r"(?<=[.!?;]) (?=[A-Za-z'])", text):
        if out and len(" ".join([*out, sentence]).split()) > OURS_WORDS:
            break
        out.append(sentence)
    return " ".join(out).removesuffix(";").removesuffix(".") + "."


def _links(names: Sequence[str]) -> str:
    return ", ".join(f"[{name}]({name})" for name in names)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _parameters(record: Record) -> str:
    return "; ".join(f"{name} {_value(value)}" for name, value in record.parameters.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _data(one: dict[str, Any]) -> str:
    where = "generated" if one["origin"] == "generated" else one["origin"]
    remark = f" ({one['remark']})" if one["remark"] else ""
    return f"{one['name']}, {where}, {one['rows']:,} x {one['columns']}, sha256 {one['sha256'][:16]}{remark}"


def _run(record: Record) -> str:
    cpu = "" if record.cpu_seconds is None else f" ({record.cpu_seconds:g} s CPU)"
    return f"{'Quick run, ' if record.quick else ''}{record.seconds:g} s{cpu}, Noren {record.version}."


def page(paper: Paper, target: Path, records: Sequence[Record]) -> str:
    """One file with its pictures inside."""
    title, figures = f"{paper.title}: reproduced", [_told(target, _figure(paper, record), record) for record in records]
    contents = [("claims", "The claims"), *((one["name"], one["title"]) for one in figures)]
    given: dict[str, Any] = {"paper": paper, "opening": opening(paper, records), "figures": figures}
    return render_page("summary.html", TEMPLATES, title=title, contents=contents, **given)


def _told(target: Path, figure: Figure, record: Record) -> dict[str, Any]:
    """What the page shows of one figure."""
    facts = [f"Parameters: {_parameters(record)}."] if record.parameters else []
    return {
        "name": figure.name,
        "heading": figure.heading,
        "title": f"{figure.heading}: {figure.title}",
        "record": record,
        "facts": facts + ([f"Data: {_data(one)}." for one in record.data] or ["No data."]),
        "pictures": [base64.b64encode((target / name).read_bytes()).decode() for name in record.pictures],
        "charts": [name.removesuffix(".png") + ".html" for name in record.pictures],
        "run": _run(record),
    }
