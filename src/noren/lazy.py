"""Public names that are loaded when they are first used, so that importing a package costs next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy(
    package: str, homes: Mapping[str, str], rooms: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names live in modules, from one table of them.

    `homes` says in which module a name lives; `rooms` are packages inside this one that can be reached by name. Type
    checkers read the same from the stub beside the package.
    """
    names = sorted([*homes, *rooms])

    def found(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        if name in rooms:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return found, lambda: list(names), names
