"""Hooks of the documentation site: notebooks and files from above docs/ become pages, and built pages are checked.

MkDocs checks the links it reads in Markdown. Here every page that was built is read again: a link must lead to a file
and an anchor that exist, and no page may load a script, a style, a font or an image from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "licence.md",
}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s]+")
ELSEWHERE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
LOADED_STYLE = re.compile(
    r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]((?:https?:)?//[^'\"]+)", re.IGNORECASE
)


def on_files(files: Any, config: Any) -> Any:
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "LICENSE":
            text = f"# Licence\n\n```text\n{text}```\n"
        files.append(File.generated(config, page, content=LINK.sub(within_docs, text)))
    for notebook in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        for file in notebook_files(notebook, config):
            files.append(file)
    return files


def notebook_files(notebook: Path, config: Any) -> Iterator[File]:
    """The page of a notebook with the outputs that are stored in it, and its pictures."""
    prefix = f"notebooks/{notebook.stem}"
    naming = {"output_files_dir": f"{notebook.stem}_pictures", "unique_key": "output"}
    text, resources = MarkdownExporter().from_filename(str(notebook), resources=naming)
    yield File.generated(config, f"{prefix}.md", content=re.sub(r"(\w+)\.ipynb", r"\1.md", text))
    for name, picture in resources["outputs"].items():
        yield File.generated(config, f"notebooks/{name}", content=picture)


def within_docs(found: re.Match[str]) -> str:
    """A link as it is written at the root of the repository, as a page of docs/ writes it."""
    path, mark, anchor = found[0].partition("#")
    if not (ROOT / path).exists():
        raise PluginError(f"A page at the root links to {path!r}, which is not there.")
    return PAGES.get(path, path.removeprefix("docs/")) + mark + anchor


class Page(HTMLParser):
    """What one page links to, loads and can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value for name, value in attrs if value}
        self.anchors |= {told[name] for name in ("id", "name") if name in told}
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        elif tag == "link" and told.get("rel") not in ("canonical", "prev", "next", "edit") and "href" in told:
            self.loads.append(told["href"])
        if "mermaid" in told.get("class", "").split():
            self.loads.append("https://unpkg.com/mermaid")  # the theme fetches it as soon as a page has a diagram
        self.loads += [told[name] for name in ("src", "srcset", "poster", "data") if name in told and tag != "a"]


def on_post_build(config: Any) -> None:
    site = Path(config["site_dir"])
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    problems = [f"{path.relative_to(site)}: {fault}" for path in pages for fault in faults(path, pages, site)]
    for style in site.rglob("*.css"):
        for found in LOADED_STYLE.finditer(style.read_text(encoding="utf-8")):
            problems.append(f"{style.relative_to(site)}: loads {found[1] or found[2]}")
    if problems:
        raise PluginError("\n".join(["The built site is not whole:", *problems]))


def faults(path: Path, pages: dict[Path, Page], site: Path) -> Iterator[str]:
    page = pages[path]
    yield from (f"loads {load}" for load in page.loads if ELSEWHERE.match(load))
    for link in [*page.links, *page.loads]:
        parts = urlsplit(link)
        if (
            parts.scheme or parts.netloc or path.name == "404.html"
        ):  # 404 is served from anywhere: its links are absolute
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file() or not target.is_relative_to(site.resolve()):
            yield f"{link} leads to no file"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{link} leads to no place on that page"
