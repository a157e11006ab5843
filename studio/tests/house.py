"""A real studio: the command as a person starts it, and browsers that write down everything they ask for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

SHOTS = Path(__file__).parents[2] / "build" / "studio"
"""Where pictures go; git ignores it."""
PICTURES = Path(__file__).parents[2] / "docs" / "images" / "studio"
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=\S+")
LONG = 240_000
"""Milliseconds that something computed may take on a busy machine."""
SECONDS = LONG / 1000


class House:
    """A studio that runs."""

    def __init__(self, *arguments: str, folder: Path | None = None, temporary: Path | None = None) -> None:
        command = [sys.executable, "-m", "noren.cli.main", "studio", "--no-browser", *arguments]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = os.environ | ({} if temporary is None else {"TMPDIR": str(temporary)})
        self.process = subprocess.Popen(command, text=True, cwd=folder, env=env, **pipes)
        self.log: list[str] = []
        self._addresses: Queue[str] = Queue()
        streams = (self.process.stdout, self.process.stderr)
        self._readers = [threading.Thread(target=self._read, args=(one,), daemon=True) for one in streams]
        for thread in self._readers:
            thread.start()
        self.first = self._addresses.get(timeout=SECONDS)
        found = ADDRESS.search(self.first)
        assert found is not None
        self.port = int(found[1])
        self.base = f"http://127.0.0.1:{self.port}"

    def _read(self, stream: Any) -> None:
        for line in stream:
            self.log.append(line)
            if found := ADDRESS.search(line):
                self._addresses.put(found[0])

    def invite(self) -> str:
        """Another one-time address, as Enter in the terminal gives it."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._addresses.get(timeout=SECONDS)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=SECONDS)
        for thread in self._readers:
            thread.join(SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@dataclass
class Visit:
    """One browser of its own in the studio, and what happened in it."""

    page: Any
    base: str
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def abroad(self) -> list[str]:
        """Requests and sockets that left the studio."""
        own = (self.base, self.base.replace("http", "ws"), "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]

    def go(self, path: str) -> None:
        self.page.goto(self.base + path)
        self.ready()

    def reload(self) -> None:
        self.page.reload()
        self.ready()

    def ready(self) -> None:
        """Wait until the page listens: what is typed before its socket stands is lost."""
        self.page.wait_for_selector(".n-main")
        self.page.wait_for_function("window.did_handshake === true")

    def click(self, name: str, exact: bool = True) -> None:
        self.page.get_by_role("button", name=name, exact=exact).first.click()

    def sees(self, text: str, timeout: int = LONG) -> None:
        self.page.get_by_text(text).first.wait_for(timeout=timeout)

    def undoes(self, words: str) -> None:
        """Wait until this is what can be undone: the edit was made, and the page shows it."""
        self.page.get_by_label(f"Undo: {words}").wait_for()

    def redoes(self, words: str) -> None:
        """Wait until this was undone, and the page shows it."""
        self.page.get_by_label(f"Redo: {words}").wait_for()

    def works(self, job: str) -> Any:
        """Wait until a job has its turn, and find its card: while it waits there is no clock."""
        card = self.page.locator(f'[data-job="{job}"]')
        card.locator(".n-num", has_text=re.compile(r"\d")).wait_for()
        return card

    def reads(self, cells: str, wanted: Sequence[str]) -> None:
        """Wait until these cells begin with these texts: rows of a long table are drawn one after another."""
        first = """([cells, wanted]) => {
          const seen = [...document.querySelectorAll(cells)].map((one) => one.innerText);
          return wanted.every((text, at) => seen[at] === text);
        }"""
        assert wanted
        self.page.wait_for_function(first, arg=[cells, list(wanted)])

    def open_table(self, path: Path) -> None:
        self.go("/table")
        self.page.get_by_label("Path of a file").fill(str(path))
        self.page.get_by_label("Path of a file").press("Enter")
        self.sees("What Noren understood")
        self.undoes(f"open {path.name}")

    def pick_column(self, name: str) -> None:
        """Select a column in step 2, and wait until the page is about it."""
        self.page.locator("[data-columns] .n-pick.n-cut", has_text=name).first.click()
        self.page.locator("main section h2", has_text=name).first.wait_for()

    def point(self, chart: str, series: int, at: int) -> tuple[float, float]:
        """Where a point of a chart is drawn on the screen, once it stands still there and nothing lies over it."""
        place = """async ([chart, series, at]) => {
          const frame = () => new Promise((next) => requestAnimationFrame(next));
          const where = () => {
            const box = document.querySelector(`[data-${chart}]`);
            const drawn = box && getElement(Number(box.id.slice(1)))?.chart;
            const mark = drawn?.getModel()?.getSeriesByIndex(series)?.getData().getItemGraphicEl(at);
            if (!mark) return null;
            const moved = mark.getComputedTransform(), around = box.getBoundingClientRect();
            return [around.x + moved[4], around.y + moved[5]];
          };
          document.querySelector(`[data-${chart}]`)?.scrollIntoView({block: "center"});
          const first = where();
          await frame(); await frame();
          const then = where();
          if (!first || !then || first.join() !== then.join()) return null;
          return document.elementFromPoint(...then)?.closest(`[data-${chart}]`) ? then : null;
        }"""
        x, y = self.page.wait_for_function(place, arg=[chart, series, at]).json_value()
        return x, y

    def shot(self, name: str) -> Path:
        """A picture of what is seen, for people to look at; NOREN_PICTURES=1 renews those of the documentation."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        target = SHOTS / f"{name}.png"
        self.page.mouse.move(640, 790)
        self.page.screenshot(path=target)
        kept = PICTURES / f"{name}.png"
        if os.environ.get("NOREN_PICTURES") and kept.exists():
            kept.write_bytes(target.read_bytes())
        return target


@contextmanager
def visiting(browser: Any, house: House, address: str | None = None, **options: Any) -> Iterator[Visit]:
    """A fresh browser context, let in by a one-time address."""
    options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | options
    context = browser.started.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(LONG)
    visit = Visit(page, house.base)
    page.on("request", lambda request: visit.requests.append(request.url))
    page.on("websocket", lambda socket: visit.requests.append(socket.url))
    page.on("pageerror", lambda error: visit.faults.append(str(error)))
    page.on("console", lambda message: visit.faults.append(message.text) if message.type == "error" else None)
    try:
        page.goto(address or house.invite())
        visit.ready()
        yield visit
    finally:
        context.close()
