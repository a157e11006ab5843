"""The distributions on top of Noren use what anyone may use.

Public is what `__all__` names, of `noren` or of one of its rooms (`noren.models`, `noren.policy`, ...), and in the
modules that stand beside the rooms (`noren.errors`, `noren.results`, ...) every name without an underscore. The studio
keeps to that. Papers measure the inside of methods as well: modules within a room are open to them, kernels and
names with an underscore are not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

import noren_papers
import noren_studio


def imported(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Every name of the library that a module imports: its line, where from, and the name ("" for a module)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names if alias.name.split(".")[0] == "noren")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "noren":
            yield from ((node.lineno, node.module or "", alias.name) for alias in node.names)


def is_public(home: str, name: str) -> bool:
    """Whether anyone may import this name from there."""
    if name == "__version__":
        return home == "noren"
    if home.count(".") > 1 or name.startswith("_"):
        return False
    module = import_module(home)
    is_room = hasattr(module, "__path__")
    return not name or (name in getattr(module, "__all__", ()) if is_room else hasattr(module, name))


def is_open_to_papers(home: str, name: str) -> bool:
    """Whether an experiment may import this name from there."""
    parts = f"{home}.{name}".split(".")[1:]
    return not any(part.endswith("kernels") or (part.startswith("_") and part != "__version__") for part in parts)


@pytest.mark.parametrize(
    ("package", "allowed"), [(noren_studio, is_public), (noren_papers, is_open_to_papers)], ids=["studio", "papers"]
)
def test_a_distribution_uses_only_what_anyone_may_use(package: object, allowed: Callable[[str, str], bool]) -> None:
    folder = Path(str(package.__file__)).parent  # type: ignore[attr-defined]
    modules = sorted(folder.rglob("*.py"))
    assert len(modules) > 20
    wrong = [
        f"{path.relative_to(folder)}, line {line}: {name} of {home}"
        for path in modules
        for line, home, name in imported(ast.parse(path.read_text(encoding="utf-8")))
        if not allowed(home, name)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "code",
    ["import noren.statements.kernels", "from noren.statements import kernels",
     "def f():\n    from noren.models import kernels",
     "from noren import _homes", "from noren.secret._words import words"],
)  # fmt: skip
def test_the_walk_sees_an_import_that_is_open_to_nobody(code: str) -> None:
    ((_, home, name),) = imported(ast.parse(code))
    assert not is_open_to_papers(home, name)


@pytest.mark.parametrize(
    "code",
    ["from noren import _homes", "from noren import policy", "from noren.policy.policy import Policy",
     "from noren.policy import guessing", "import noren.policy.policy", "from noren.results import _cell",
     "from noren.statements import kernels"],
)  # fmt: skip
def test_the_walk_sees_an_import_from_within_a_room(code: str) -> None:
    ((_, home, name),) = imported(ast.parse(code))
    assert not is_public(home, name)


@pytest.mark.parametrize(
    "code",
    ["import noren as nr", "from noren import Policy", "from noren import models", "from noren.models import Verdict",
     "from noren.errors import NorenError", "from noren import __version__"],
)  # fmt: skip
def test_the_walk_lets_a_public_name_pass(code: str) -> None:
    ((_, home, name),) = imported(ast.parse(code))
    assert is_public(home, name)
