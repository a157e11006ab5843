"""The studio under load: ten sessions with 100,000 rows each, and a table of 2 million rows and 70 columns.

    python benchmarks/studio_load.py [load] [wide] [--sessions 10] [--rows 100000] [--wide-rows 2000000] [--patience S]

Real browsers (Playwright with the system's Chromium). `wide` opens the large table as Parquet and as CSV, waits until
the page shows what was understood, and scrolls the rows while it writes down every frame. `load` opens a table in all
sessions at once and waits until each shows what was understood and the raw risk. Printed are wall seconds, processor
seconds of the studio and its workers, and the most memory that they held together, seen ten times a second. Nothing
waits for ever: a session that shows no result in time counts as one that failed.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")
PATIENCE = 240
"""Seconds after which a session has failed, unless told otherwise: on a busy machine everything takes longer."""
FRAMES = """
async ([times, step]) => {
  const box = document.querySelector('[data-preview] .q-table__middle');
  const marks = [];
  box.scrollIntoView();
  for (let at = 0; at < times; at++) {
    await new Promise((go) => requestAnimationFrame((now) => { marks.push(now); box.scrollTop += step; go(); }));
  }
  const gaps = marks.slice(1).map((now, at) => now - marks[at]).sort((a, b) => a - b);
  return {
    median: gaps[gaps.length >> 1], worst: gaps[gaps.length - 1], rows: box.querySelectorAll('tbody tr').length,
    top: box.scrollTop,
  };
}
"""


class Studio:
    """A studio, started as a person does, whose memory is watched."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "noren.cli.main", "studio", "--no-browser"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self._next()
        self.most = {"server": 0.0, "one worker": 0.0, "all": 0.0, "workers": 0}
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _next(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := ADDRESS.search(line):
                return found[0]
        raise SystemExit("the studio has ended")

    def invite(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._next()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            children = [_held(pid) for pid in _children(self.process.pid)]
            server = _held(self.process.pid)
            now = {"server": server, "one worker": max(children, default=0.0), "all": server + sum(children),
                   "workers": sum(one > 0 for one in children)}  # fmt: skip
            self.most = {name: max(self.most[name], now[name]) for name in now}

    def end(self) -> dict[str, Any]:
        """Ends it; gives the processor seconds of server and workers, and the most memory in MB."""
        self._over.set()
        self._watcher.join()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.process.terminate()
        self.process.wait(60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"processor seconds": round(used, 1)} | {
            f"most {name}" + ("" if name == "workers" else ", MB"): round(value) for name, value in self.most.items()
        }


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for t in Path(f"/proc/{pid}/task").glob("*/children") for p in t.read_text().split()]
    except OSError:
        return []


def _held(pid: int) -> float:
    """Memory that a process holds, with its share of what it has in common with others, in MB."""
    try:
        found = re.search(r"Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


def people(folder: Path, rows: int) -> Path:
    import pyarrow.csv as pv

    from noren.cli.demo import hospital_table

    target = folder / "people.csv"
    pv.write_csv(hospital_table(rows), target)
    return target


def wide_tables(folder: Path, rows: int, columns: int = 70) -> dict[str, Path]:
    """Codes, numbers and amounts, written as Parquet and as CSV."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pv
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    made: dict[str, Any] = {}
    for at in range(columns):
        if at % 7 == 0:
            made[f"amount{at}"] = pa.array(rng.integers(0, 5_000, rows, np.int32))
        else:
            made[f"q{at}"] = pa.array(rng.integers(0, 3 + at % 9, rows, np.int8))
    table = pa.table(made)
    out = {"parquet": folder / "wide.parquet", "csv": folder / "wide.csv"}
    pq.write_table(table, out["parquet"])
    pv.write_csv(table, out["csv"])
    return out


def entered(browser: Any, address: str) -> Any:
    """A page of a session of its own, which listens."""
    # a browser without graphics card draws what moves by the processor, which is not what is measured here
    page = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce").new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(address)
    page.goto(address.partition("?")[0] + "table")
    page.get_by_label("Path of a file").wait_for()
    page.wait_for_function("window.did_handshake === true")
    return page


def begin(page: Any, path: Path) -> None:
    field = page.get_by_label("Path of a file")
    field.fill(str(path))
    field.press("Enter")


def wide(browser: Any, folder: Path, rows: int) -> dict[str, Any]:
    """Seconds until the large table is understood, and how it scrolls."""
    found: dict[str, Any] = {}
    for kind, path in wide_tables(folder, rows).items():
        say(f"{rows:,} x 70 as {kind}, {path.stat().st_size / 1e6:,.0f} MB")
        studio = Studio()
        page = entered(browser, studio.address)
        page.wait_for_timeout(5_000)  # the first worker is loading: a person takes as long to pick a file
        began = time.perf_counter()
        begin(page, path)
        page.get_by_text("What Noren understood").wait_for()
        opened = time.perf_counter() - began
        frames = page.evaluate(FRAMES, [200, 120])
        found[kind] = {
            "opened in s": round(opened, 1),
            "frame, median ms": round(frames["median"], 1), "frame, worst ms": round(frames["worst"], 1),
            "rows in the page": frames["rows"], **studio.end(),
        }  # fmt: skip
        page.context.close()
    return found


def load(browser: Any, folder: Path, sessions: int, rows: int, patience: float) -> dict[str, Any]:
    """All sessions at once."""
    table = people(folder, rows)
    studio = Studio()
    pages = [entered(browser, studio.address)]
    pages += [entered(browser, studio.invite()) for _ in range(sessions - 1)]
    for page in pages:
        page.set_default_timeout(patience * 1000)
    say(f"{sessions} sessions have come in")
    began, seconds, waited = time.perf_counter(), [], 0
    for page in pages:
        begin(page, table)
    for page in pages:
        page.locator("[data-job], .n-table").first.wait_for()
        waited += page.get_by_text("Waiting for its turn").count()
    for number, page in enumerate(pages):
        left = max(1.0, patience - (time.perf_counter() - began))
        try:
            page.get_by_text("How many people look alike").or_(page.locator(".n-note.bad")).first.wait_for(
                timeout=1000 * left
            )
        except Exception as error:
            say(f"session {number}: {type(error).__name__}")
            continue
        if page.locator(".n-note.bad").count() == 0:
            seconds.append(time.perf_counter() - began)
        say(f"session {number}: {time.perf_counter() - began:.0f} s")
    return {
        "all understood and measured in s": round(time.perf_counter() - began, 1),
        "sessions that failed": sessions - len(seconds), "pages that waited for their turn": waited, **studio.end(),
    }  # fmt: skip


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["load", "wide", []], help="What to measure; default: both.")
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--wide-rows", type=int, default=2_000_000)
    parser.add_argument("--patience", type=float, default=PATIENCE, help="Seconds after which a session has failed.")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        if "load" in asked.parts or not asked.parts:
            found[f"{asked.sessions} sessions of {asked.rows:,} rows"] = load(
                browser, Path(name), asked.sessions, asked.rows, asked.patience
            )
            say(json.dumps(found, indent=1))
        if "wide" in asked.parts or not asked.parts:
            found[f"{asked.wide_rows:,} x 70"] = wide(browser, Path(name), asked.wide_rows)
        browser.close()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
