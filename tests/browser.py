"""A real browser for pages that Noren writes: what runs in them, and what they ask the network for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

MARKS = "document.querySelectorAll('svg text, svg path, canvas').length"
TWO_FRAMES = "() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(next))))"
"""What a page does by itself when it is open, it has begun by then."""


@dataclass
class Seen:
    """What happened while a page was open."""

    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    acted: Any = None
    text: str = ""
    marks: int = 0

    @property
    def harmless(self) -> bool:
        return not (self.requests or self.dialogs or self.acted)


class Browser:
    def __init__(self, started: Any) -> None:
        self.started = started

    def look(self, file: Path, draws: bool = False) -> Seen:
        """Open a file as a reader would, until its charts are drawn if it `draws` any. A script that got in sets
        `window.acted`.
        """
        page, seen = self.started.new_page(), Seen()
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else seen.requests.append(r.url))
        page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: seen.faults.append(str(error)))
        try:
            page.goto(file.resolve().as_uri(), wait_until="load")
            page.wait_for_function(f"document.readyState === 'complete' && ({MARKS} > 0 || {json.dumps(not draws)})")
            page.evaluate(TWO_FRAMES)
            seen.acted = page.evaluate("window.acted")
            seen.text = page.evaluate("document.body.textContent")
            seen.marks = page.evaluate(MARKS)
        finally:
            page.close()
        return seen


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium through Playwright; without one the test says so and is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no browser here: install chromium to look at the pages")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield Browser(started)
        started.close()
