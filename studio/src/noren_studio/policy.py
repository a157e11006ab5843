"""The policy of a session: sections as TOML reads them, judged by the library and by nobody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.errors import NorenError, PolicyError, Problem

if TYPE_CHECKING:
    from noren import Policy


@dataclass(frozen=True)
class Rules:
    """A policy, or what is wrong with it."""

    policy: Policy | None
    problems: Sequence[Problem] = field(default_factory=tuple)

    def about(self, *where: str) -> list[Problem]:
        """Problems that stand at one of these places of the policy, or below it."""
        return [
            p for p in self.problems if any(p.where == at or p.where.startswith((f"{at}.", f"{at}[")) for at in where)
        ]


def read_rules(sections: Mapping[str, Any], base: Path) -> Rules:
    """The sections as a policy; paths in it are relative to `base`."""
    from noren import Policy

    if not sections:
        return Rules(None)
    try:
        return Rules(Policy(**{**sections, "base": base}))
    except PolicyError as error:
        return Rules(None, error.problems)
    except NorenError as error:
        return Rules(None, (Problem("", error.message, error.hint or ""),))


def text_of(policy: Policy, folder: Path) -> str:
    """The policy as the text of a file in `folder`."""
    from noren.policy import text_for

    return text_for(policy, folder)
