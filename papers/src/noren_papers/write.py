"""What a figure leaves on disk: CSV sheets, PNG and HTML charts, and a record of answers, parameters and data.

Every file is written aside and renamed. Charts are HTML pages that load one script beside them, so that a folder of
fifty charts opens without a network and does not carry fifty copies of the chart maker.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from noren import __version__
from noren.errors import NorenError
from noren.files import write_whole
from noren_papers.base import Figure, Paper, Result
from noren_papers.datasets import Used

SCRIPT = "charts.js"


@dataclass(frozen=True)
class Record:
    """One figure as it stands in the folder."""

    key: str
    quick: bool
    seconds: float
    version: str
    answers: list[dict[str, str]]
    ours: str
    ours_series: list[str]
    parameters: dict[str, Any]
    notes: list[str]
    data: list[dict[str, Any]]
    sheets: list[str]
    pictures: list[str]
    gains: list[dict[str, Any]]
    cpu_seconds: float | None = None
    """Of all threads: what other work on the machine does not change. Records of older runs lack it."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def prepare(target: Path) -> Path:
    """The folder of a paper. A file in its place is refused, other things in it are left alone."""
    if target.exists() and not target.is_dir():
        raise NorenError(f"{target} is not a folder.", hint="Choose another --out.")
    target.mkdir(parents=True, exist_ok=True)
    return target


def write_figure(
    target: Path, figure: Figure, result: Result, used: Sequence[Used], *, quick: bool, seconds: float,
    cpu_seconds: float,
) -> Record:  # fmt: skip
    """Write a figure's files and its record, the record last: a figure without one was not finished."""
    sheets, pictures = [], []
    for name, sheet in result.sheets.items():
        sheets.append(_named(figure, name, ".csv"))
        write_whole(target / sheets[-1], _csv(sheet))
    if result.pictures:
        _write_script(target)
    for name, chart in result.pictures.items():
        pictures.append(_named(figure, name, ".png"))
        text = chart.to_json(indent=None)
        write_whole(target / pictures[-1], _png(text, 1.0 if quick else 1.4))
        write_whole(target / _named(figure, name, ".html"), _page(figure, text).encode())
    record = Record(
        key=figure.key,
        quick=quick,
        seconds=round(seconds, 1),
        version=__version__,
        answers=[{"claim": text, **asdict(result.answers[key])} for key, text in figure.claims.items()],
        ours=result.ours,
        ours_series=list(result.ours_series),
        parameters={name: _plain(value) for name, value in result.parameters.items()},
        notes=list(result.notes),
        data=[asdict(one) for one in used],
        sheets=sheets,
        pictures=pictures,
        gains=[{name: _digits(value) for name, value in asdict(one).items()} for one in result.gains],
        cpu_seconds=round(cpu_seconds, 1),
    )
    write_whole(
        target / f"{figure.name}.json", (json.dumps(record.to_dict(), ensure_ascii=False, indent=1) + "\n").encode()
    )
    return record


def read_records(paper: Paper, target: Path) -> list[Record]:
    """The records in a folder, in the order of the paper. One that cannot be read counts as not run."""
    out = []
    for figure in paper.figures:
        path = target / f"{figure.name}.json"
        if path.is_file():
            try:
                out.append(Record(**json.loads(path.read_text(encoding="utf-8"))))
            except (ValueError, TypeError):
                continue  # torn, or of another version
    return out


def _named(figure: Figure, part: str, suffix: str) -> str:
    return f"{figure.name}{'-' + part if part else ''}{suffix}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _digits(value: Any) -> Any:
    """Six significant digits: what was measured has no more."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _csv(sheet: Any) -> bytes:
    """A sheet with six significant digits: what was measured has no more."""
    import polars.selectors as cs

    return str(sheet.with_columns(cs.float().round_sig_figs(6)).write_csv()).encode()


def _png(text: str, scale: float) -> bytes:
    import vl_convert as vlc

    return packed(bytes(vlc.vegalite_to_png(text, scale=scale)))


def packed(png: bytes) -> bytes:
    """The same picture, its pixels compressed as far as zlib goes: the chart maker writes them three times as large."""
    kept, pixels, place = [], b"", 8
    while place < len(png):
        (size,) = struct.unpack(">I", png[place : place + 4])
        kind, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        if kind == b"IDAT":
            pixels += content
        else:
            kept.append((kind, content))
        place += 12 + size
    end = kept.pop()
    kept += [(b"IDAT", zlib.compress(zlib.decompress(pixels), 9)), end]
    return png[:8] + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in kept
    )


def _write_script(target: Path) -> None:
    if (target / SCRIPT).exists():
        return
    write_whole(target / SCRIPT, f'(function () {{"use strict";\n{_bundle()}\n}})();\n'.encode())


@lru_cache(maxsize=1)
def _bundle() -> str:
    """Made once for the folders of all papers: it takes seconds."""
    import vl_convert as vlc

    return str(vlc.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _page(figure: Figure, text: str) -> str:
    """A chart's page; the specification is data, and nothing in it can end the script element.

    Plain scripts, because browsers load no module from a file on disk.
    """
    safe = text.replace("</", "<\\/").replace("<!--", "<\\!--")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<title>{figure.heading}</title>\n<script src="{SCRIPT}"></script>\n</head>\n<body>\n'
        f'<div id="chart"></div>\n<script>\n'
        f'window.vegaEmbed("#chart", {safe}, {{renderer: "svg"}});\n</script>\n</body>\n</html>\n'
    )
