"""From plain data to a page: the templates lay out, and whatever is not markup already is escaped.

Python decides what a page says and in which figures; a template decides where it stands. A column called like a tag
stays a name.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


TEMPLATES = Path(__file__).parent / "templates"
VISIBLE = {code: "\N{REPLACEMENT CHARACTER}" for code in range(32) if chr(code) not in "\n\t"}
"""Control characters, which HTML forbids, are shown."""


@dataclass(frozen=True)
class Line:
    """A sentence, and whether it rests on the original."""

    text: str
    holder: bool = False


@dataclass(frozen=True)
class Table:
    """A table of texts. `numbers` are the columns that are set to the right."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[int] = ()
    holder: bool = False


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption. The figures that it shows stand in a table beside it."""

    drawing: Markup
    caption: str
    holder: bool = False


@dataclass(frozen=True)
class Part:
    """Words, a drawing, a table with its figures, and notes, in this order."""

    figure: Figure | None
    table: Table
    title: str = ""
    words: Sequence[str] = ()
    notes: Sequence[str] = ()


def render(template: str, /, folder: Path = TEMPLATES, **data: Any) -> Markup:
    """A template of a folder, which may use those of the report, filled with data."""
    from markupsafe import Markup

    return Markup(_environment(folder).get_template(template).render(data))


def render_page(template: str, /, folder: Path = TEMPLATES, *, holder: bool = False, **data: Any) -> str:
    """The whole page: one file that loads nothing, runs nothing, and sends nothing.

    On paper a holder-only page says so at the top of every sheet.
    """
    from markupsafe import Markup

    look = style(holder)
    digest = base64.b64encode(hashlib.sha256(look.encode()).digest()).decode()
    return str(render(template, folder, style=Markup(look), style_digest=digest, **data))


def style(holder: bool = False) -> str:
    """How a page looks."""
    names = ("style.css", "holder.css") if holder else ("style.css",)
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


@cache
def _environment(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value.translate(VISIBLE) if isinstance(value, str) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "number": number, "whole": "{:,}".format}
    return made


def percent(share: float | None) -> str:
    """A share for people; a little is not nothing, and nearly all is not all."""
    if share is None:
        return "-"
    if 0 < abs(share) < 0.0005:
        return "under 0.1%"
    if 0.9995 <= share < 1 - 1e-12:
        return "over 99.9%"
    return f"{share:.1%}"


def number(value: float | None) -> str:
    """A figure for people: whole numbers in full, others with four digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:,.4g}"


MOST = 10
"""Lines of one kind."""
MANY_COLUMNS = 20
"""Published columns from which those of one kind share a line."""


def worst(found: Sequence[Any], badness: Callable[[Any], float], most: int = MOST) -> list[Any]:
    """The worst of them in the order they came."""
    if len(found) <= most:
        return list(found)
    ranked = sorted(range(len(found)), key=lambda at: -badness(found[at]))[:most]
    return [found[at] for at in sorted(ranked)]


def counted(found: Sequence[Any], most: int = MOST) -> str:
    """A sentence for what is not shown; empty where all is."""
    more = len(found) - most
    return "" if more <= 0 else f"{more} more, all of them less, stand in the JSON of this report."


def verdicts(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Verdicts that fail or are undecided first, then those nearest to their limit."""

    def badness(one: Mapping[str, Any]) -> float:
        near = 1 - abs((one["achieved"] or 0.0) - one["required"]) / max(abs(one["required"]), 1e-9)
        return (2.0 if one["holds"] is False else 1.5 if one["holds"] is None else 0.0) + min(max(near, 0.0), 1.0)

    return worst(found, badness)


def columns(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Published columns; where there are many, those of one role, form and requirement share a line."""
    if len(found) <= MANY_COLUMNS:
        return [dict(one) for one in found]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for one in found:
        groups.setdefault((one["role"], one["form"], tuple(one["requirements"])), []).append(one)
    out = []
    for (role, form, asked), some in groups.items():
        sizes = [one["values"] for one in some if one["values"]]
        said = {one["published"] for one in some}
        out.append(
            {
                "name": f"{len(some)}: {', '.join(one['name'] for one in some)}" if len(some) > 1 else some[0]["name"],
                "role": role,
                "published": said.pop() if len(said) == 1 else f"as {form}s",
                "values": max(sizes) if sizes else None,
                "domain_from": ", ".join(dict.fromkeys(one["domain_from"].split(";")[0] for one in some)),
                "requirements": list(asked),
            }
        )
    return out
