"""A process with everything imported that forks for every change: python -m tests.mutants.serve

Starting Python and importing cost more than the tests that notice. Each line of the input asks for some tests, with
one function changed or with the lines noted that they reach; each line of the output is the exit code of pytest, or
"late". What is imported only in the child finds the changed file on disk.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutants.watch import Chooser, Watcher

FAULT = 70
"""The exit code of a child that could not run the tests."""
ARGUMENTS = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
LIBRARIES = (
    "hypothesis.strategies",
    "pandas",
    "scipy.stats",
    "scipy.sparse",
    "scipy.optimize",
    "altair",
    "click.testing",
)


def outermost(text: str, line: int) -> tuple[str, int] | None:
    """Name and first line of the function around a line that stands in no other function."""

    def visit(node: ast.AST, within: str) -> tuple[str, int] | None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                if first <= line <= (child.end_lineno or 0):
                    return within + child.name, first
            else:
                inside = f"{within}{child.name}." if isinstance(child, ast.ClassDef) else within
                if found := visit(child, inside):
                    return found
        return None

    return visit(ast.parse(text), "")


def codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from codes(one)


def give(file: Path, before: str, text: str, line: int) -> None:
    """Every function object of an imported file that stands around a line gets its code from the changed text."""
    key = outermost(before, line)
    (new,) = (c for c in codes(compile(text, str(file), "exec")) if (c.co_qualname, c.co_firstlineno) == key)
    imported = [one for one in gc.get_objects() if type(one) is FunctionType]  # isinstance asks a dead weak proxy, too
    for one in imported:
        code = one.__code__
        if code.co_filename == str(file) and (code.co_qualname, code.co_firstlineno) == key:
            one.__code__ = new


def child(asked: dict[str, Any]) -> int:
    """The exit code of these tests with the change, or of a file of tests whose lines are noted."""
    if "watch" in asked:
        watcher = Watcher(Path(asked["watch"]), asked["folders"])
        return int(pytest.main([*ARGUMENTS, *asked["tests"]], plugins=[watcher]))
    file = Path(asked["file"])
    give(file, asked["before"], file.read_text(), asked["line"])
    chooser = Chooser(asked["tests"], Path(asked["failed"]))
    files = list(dict.fromkeys(test.split("::")[0] for test in asked["tests"]))
    return int(pytest.main(["-x", *ARGUMENTS, *files], plugins=[chooser]))


def ended(asked: dict[str, Any]) -> int | str:
    """What became of a child in its seconds."""
    pid = os.fork()
    if pid == 0:
        code = FAULT
        try:
            os.setsid()
            code = child(asked)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    until = time.monotonic() + asked["seconds"]
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "late"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    for name in LIBRARIES:
        importlib.import_module(name)
    noren = importlib.import_module("noren")
    for module in pkgutil.walk_packages(noren.__path__, "noren."):
        importlib.import_module(module.name)
    print("ready" if alone() else "several threads", file=answers)
    for line in sys.stdin:
        print(ended(json.loads(line)), file=answers)


def alone() -> bool:
    """Whether no other thread runs: a fork would leave it behind. Jemalloc starts its own anew."""
    tasks = Path("/proc/self/task")
    names = [(one / "comm").read_text().strip() for one in tasks.iterdir()] if tasks.exists() else []
    return len([name for name in names if name != "jemalloc_bg_thd"]) == 1


if __name__ == "__main__":
    main()
