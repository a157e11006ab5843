"""The papers, by the name they have on the command line; modules are imported when asked for."""

from __future__ import annotations

from importlib import import_module

from noren.errors import QueryError
from noren_papers.base import Paper

HOMES = {
    "sensitive-qids": "noren_papers.sensitive_qids",
    "quasi-sensitive": "noren_papers.quasi_sensitive",
    "untouched-qids": "noren_papers.untouched_qids",
    "semantic": "noren_papers.semantic",
    "tau-l": "noren_papers.tau_l",
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
