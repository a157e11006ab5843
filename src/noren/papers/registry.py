"""The papers, by the name they have on the command line; modules are imported when asked for."""

from __future__ import annotations

from importlib import import_module

from noren.errors import QueryError
from noren.papers.base import Paper

HOMES = {
    "sensitive-qids": "noren.papers.sensitive_qids",
    "quasi-sensitive": "noren.papers.quasi_sensitive",
    "untouched-qids": "noren.papers.untouched_qids",
    "semantic": "noren.papers.semantic",
    "tau-l": "noren.papers.tau_l",
}
"""Each home is a package with a `PAPER`."""


def find_paper(key: str) -> Paper:
    """A paper by its name. Raises where there is none."""
    if key not in HOMES:
        raise QueryError(f"there is no paper called {key!r}.", hint=f"Choose one of: {', '.join(HOMES)}.")
    paper: Paper = import_module(HOMES[key]).PAPER
    return paper


def papers() -> tuple[Paper, ...]:
    return tuple(find_paper(key) for key in HOMES)
