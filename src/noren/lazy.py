"""Public names that are loaded when they are first used, so that importing a package is fast."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

IMPORT = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def lazy(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from the stub file beside it.

    The stub is what type checkers read: a line `from home import name as name` for every public name. A name whose home
    is the package itself is a package inside it.
    """
    homes = {name: home for home, name in IMPORT.findall(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))}
    names = sorted(homes)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(homes[name]), name)

    return load, lambda: list(names), names
