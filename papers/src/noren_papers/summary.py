"""The summary of a paper, for people: every claim with its verdict first, then figure by figure how it was found."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from noren.files import write_whole
from noren.report.render import render_page
from noren_papers.base import VERDICTS, Figure, Paper
from noren_papers.write import Record

TEMPLATES = Path(__file__).parent / "templates"


def write_summary(paper: Paper, target: Path, records: Sequence[Record]) -> None:
    """summary.md and summary.html over the figures that a folder holds."""
    write_whole(target / "summary.md", markdown(paper, records).encode())
    write_whole(target / "summary.html", page(paper, target, records).encode())


def counted(records: Sequence[Record]) -> str:
    """How many claims hold, hold in part, do not."""
    found = [answer["verdict"] for record in records for answer in record.answers]
    return ", ".join(f"{found.count(verdict)} {_plural(verdict, found.count(verdict))}" for verdict in VERDICTS)


def _plural(verdict: str, count: int) -> str:
    if count == 1:
        return verdict
    return verdict.replace("holds", "hold").replace("does", "do")


def opening(paper: Paper, records: Sequence[Record]) -> list[str]:
    """What was run, on what, and what is missing."""
    claims = sum(len(record.answers) for record in records)
    lines = [f"{claims} claims of {len(records)} figures and tables were measured: {counted(records)}."]
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
    out = [f"# {paper.title}", "", paper.source, ""]
    for line in opening(paper, records):
        out += [line, ""]
    out += ["| figure | the paper says | the claim |", "| --- | --- | --- |"]
    for record in records:
        heading = _figure(paper, record).heading
        out += [
            f"| [{heading}](#{_anchor(_figure(paper, record))}) | {_cell(answer['claim'])} | **{answer['verdict']}** |"
            for answer in record.answers
        ]
    for record in records:
        figure = _figure(paper, record)
        out += ["", f"## {figure.heading}: {figure.title}", ""]
        out += [f"![{figure.heading}: {_cell(figure.title)}]({name})\n" for name in record.pictures]
        out += [
            f"- *{_cell(a['claim'])}* **{a['verdict'].capitalize()}**: {_cell(a['measured']).rstrip('.')}."
            for a in record.answers
        ]
        out += ["", f"**Ours** ({', '.join(record.ours_series)}): {record.ours}", ""]
        out += [f"- {note}" for note in record.notes]
        out += ["", "Parameters: " + _parameters(record) + "." if record.parameters else ""]
        out += ["", "Data: " + "; ".join(map(_data, record.data)) + "." if record.data else "No data.", ""]
        out += [f"Numbers: {', '.join(f'[{name}]({name})' for name in record.sheets)}. {_run(record)}"]
    return "\n".join(out).rstrip() + "\n"


def _anchor(figure: Figure) -> str:
    """The address that readers of Markdown give to a figure's heading."""
    words = f"{figure.heading}: {figure.title}".lower()
    return "".join(c for c in words if c.isalnum() or c in " -_").replace(" ", "-")


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
    return f"{'Quick run' if record.quick else 'Full run'}, {record.seconds:g} s, Noren {record.version}."


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
