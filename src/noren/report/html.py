"""The few pieces of HTML that a report is made of. Whatever comes from data is text, never markup.

A `Markup` is text that is already safe; everything else is escaped when it is put into a page, so that a column called
like a tag stays a name.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from html import escape

from noren.report.style import HOLDER_SHEETS, STYLE


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def safe(text: object) -> Markup:
    """Anything as HTML text; control characters, which HTML forbids, become visible."""
    if isinstance(text, Markup):
        return text
    plain = "".join(c if c >= " " or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    return Markup(escape(plain, quote=True))


def join(parts: Sequence[object], between: str = "\n") -> Markup:
    return Markup(between.join(safe(part) for part in parts if part != ""))


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """One element. `class_` and `for_` lose their underscore, others write a dash for it."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{written}>{join(content, '')}</{tag}>")


def paragraph(*content: object) -> Markup:
    return element("p", *content)


def listing(items: Sequence[object]) -> Markup:
    return element("ul", *(element("li", item) for item in items)) if items else Markup("")


def code(text: object) -> Markup:
    return element("code", text)


HOLDER = element("span", "Holder only", class_="mark")
"""Stands beside whatever was computed from the original."""


def table(
    caption: object,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Collection[int] = (),
    *,
    holder: bool = False,
    name: str | None = None,
) -> Markup:
    """A table with a caption, column headings and the first cell of each row as its heading.

    `numbers` are set to the right. A table from the original says so in its caption, where a reader who jumps from
    table to table meets it too.
    """

    def cell(place: int, content: object) -> Markup:
        right = " class=n" if place in numbers else ""
        if not place:
            return Markup(f'<th scope="row"{right}>{safe(content)}</th>')
        return Markup(f"<td{right}>{safe(content)}</td>")

    head = "".join(
        f'<th scope="col"{" class=n" if place in numbers else ""}>{safe(title)}</th>'
        for place, title in enumerate(header)
    )
    body = "\n".join("<tr>" + "".join(cell(i, c) for i, c in enumerate(row)) + "</tr>" for row in rows)
    told = join([HOLDER, caption], " ") if holder else safe(caption)
    where = "" if name is None else f' id="{escape(name, quote=True)}"'
    label = escape(_plain(caption), quote=True)
    return Markup(
        f'<div class="wide" role="group" tabindex="0" aria-label="{label}"><table{where}>'
        f"<caption>{told}</caption><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def figure(drawing: Markup, caption: object, *, holder: bool = False) -> Markup:
    """A drawing with its caption. The figures that it shows stand in a table beside it."""
    told = join([HOLDER, caption], " ") if holder else safe(caption)
    return element("figure", drawing, element("figcaption", told))


def section(name: str, title: str, *content: object) -> Markup:
    """A part of the page with its heading, which readers can jump to."""
    head = element("h2", title, id=name)
    return Markup(f'<section aria-labelledby="{name}">\n{join([head, *content])}\n</section>')


def document(
    title: str, header: Markup, sections: Sequence[tuple[str, str, Markup]], footer: Markup, *, holder: bool
) -> str:
    """The whole page: one file that loads nothing, runs nothing, and sends nothing.

    On paper a holder-only page says so at the top of every sheet.
    """
    style = STYLE + (HOLDER_SHEETS if holder else "")
    contents = element(
        "nav",
        element("h2", "Contents", id="contents"),
        element("ol", *(element("li", element("a", name, href=f"#{at}")) for at, name, _ in sections)),
        aria_labelledby="contents",
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    guard = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    body = join([part for _, _, part in sections])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{guard}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f"<title>{safe(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">To the report</a>\n<header>\n{header}\n</header>\n{contents}\n'
        f'<main id="main">\n{body}\n</main>\n<footer>\n{footer}\n</footer>\n</body>\n</html>\n'
    )


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


def _plain(caption: object) -> str:
    """The words of a caption without its tags."""
    return caption if isinstance(caption, str) and not isinstance(caption, Markup) else "Table"
