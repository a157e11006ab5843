"""The pages, in the order of the steps. A page is one module with a function `build(session)`.

The contract of `build`: it is called inside the column of the page, once a load and again after undo or redo, and adds
elements there. It reads `session.draft`, `session.rules`, `session.result(name)` and `session.jobs`, changes the policy
through `session.edit` alone and computes through `session.start` alone, with functions of `noren_studio.work`. What it
must find again after a reload goes into `session.kept`. Data becomes text only through `ui.label` and the helpers of
`noren_studio.parts`, never through `ui.html` or `ui.markdown`. `noren_studio.parts.refresh()` builds the page anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from noren_studio.session import Session

Side = Literal["holder", "recipient", "auditor"]


@dataclass(frozen=True)
class Page:
    """One page: the name of its module, of its texts and of its address."""

    name: str
    side: Side
    of_table: bool = True
    """Whether it makes sense only once a table is open."""

    @property
    def path(self) -> str:
        return f"/{self.name}"

    @property
    def build(self) -> Callable[[Session], None]:
        found: Callable[[Session], None] = import_module(f"noren_studio.pages.{self.name}").build
        return found


PAGES = (
    Page("table", "holder", of_table=False),
    Page("columns", "holder"),
    Page("requirements", "holder"),
    Page("choose", "holder"),
    Page("release", "holder"),
    Page("recipient", "recipient", of_table=False),
    Page("auditor", "auditor", of_table=False),
)
