"""What verification asks for, and when: with and without a policy, an original, a sample, margins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from noren.errors import ReleaseError
from noren.models.verdict import Verdict
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.workflow import verify as room


def said(holds: bool | None) -> Verdict:
    return Verdict("m", "c", 1.0, 1.0, holds, "the release alone", 4, 0, "")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Verification of a release of four rows, of which `seen` are read; every step leaves its name."""

    def call(policy: bool = False, original: bool = False, **given: Any) -> list[str]:
        steps: list[str] = []
        told = given.get("sample"), given.get("margins", ()), given.get("people", True)
        manifest = SimpleNamespace(sample=told[0], margins=told[1], rows_are_people=told[2], methods=(), verdicts=())
        release = SimpleNamespace(
            manifest=manifest, rows=4, records=4, columns=(), by_name={}, over=lambda columns: release
        )

        def step(name: str, result: Any) -> Any:
            def taken(*_: Any, **__: Any) -> Any:
                steps.append(name)
                return result

            return taken

        def overall(release: Any, requirements: Any, truth: Any) -> dict[str, Any]:
            steps.append("judged by the original" if truth is not None else "judged by the release")
            return {}

        def check(published: Any, requirements: Any, overall: Any, **options: Any) -> list[Verdict]:
            if "meter" not in options:
                steps.append("the release's own claims")
                return [said(True)]
            options["meter"](given.get("seen", 4))
            steps.append(f"several {options['several']}, show {options['show']}")
            return [said(given.get("holds", True))]

        class Original(room.Truth):
            def __init__(self) -> None:
                pass

            records = table = None  # type: ignore[assignment]
            verdicts = step("truth", [])
            left_out = step("left out", [])

        asked = [SimpleNamespace(of_mechanism=given.get("mechanism", False))]
        replaced = {
            "open_release": lambda one: one,
            "read_policy": lambda one: SimpleNamespace(require=asked, people=SimpleNamespace(key=())),
            "read_claims": lambda release: asked,
            "demand_described": step("described", []),
            "demand_legible": step("legible", None),
            "tallied_columns": lambda *_: [],
            "demand_shown": step("shown", None),
            "only_policy_confirms": lambda release: [],
            "demand_kept": step("kept", None),
            "other_domains": step("domains", []),
            "demand_signed": step("signed", None),
            "overall_distributions": overall,
            "check": check,
            "Judgement": SimpleNamespace(of=lambda *_: SimpleNamespace(needs=())),
            "demand_cells": step("cells", None),
            "_declared_columns": step("declared", {}),
            "demand_claims": step("claims", None),
            "with_mechanism": step("mechanism", [said(True)]),
            "find_unwanted": step("unwanted", []),
            "_another_share": step("share", []),
            "other_nodes": step("nodes", []),
            "asked_rows": step("rows", []),
            "kept_rows": step("kept rows", []),
            "asked_margins": step("margins", []),
            "declared_noise": step("noise", []),
        }
        for name, one in replaced.items():
            monkeypatch.setattr(room, name, one)
        signer: Any = {"signer": "key.pub"} if given.get("signed") else {}
        room.verify(release, "policy" if policy else None, original=Original() if original else None, **signer)  # type: ignore[arg-type]
        return steps

    return call


ALONE = ["described", "legible", "judged by the release", "several False, show 0", "cells", "shown"]
POLICY = ["described", "legible", "judged by the release", "declared", "several False, show 0", "cells", "shown"]
ASKS = ["unwanted", "share", "nodes", "domains", "rows", "margins"]
OWN = ["judged by the release", "the release's own claims", "kept", "claims"]
"""What a release claims by itself is judged without the original."""
TRUE = ["described", "legible", "judged by the original", "declared", *POLICY[4:], *OWN]
BY_DESIGN = [*POLICY, *OWN]
KNOWN = [*ALONE[:2], "judged by the original", *ALONE[3:], *OWN, "truth", "left out"]


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ({}, [*ALONE, "claims"]),
        ({"signed": True}, ["signed", *ALONE, "claims"]),
        ({"holds": None}, [*ALONE, "claims"]),
        ({"holds": False}, ALONE),
        ({"holds": False, "seen": 3}, ALONE),
        ({"people": False}, [*ALONE[:3], "several True, show 0", "cells", "shown", "claims"]),
        ({"policy": True}, [*POLICY, "claims", *ASKS]),
        ({"policy": True, "mechanism": True}, [*POLICY, "claims", *ASKS]),
        ({"original": True, "mechanism": True}, KNOWN),
        ({"policy": True, "original": True}, [*TRUE, *ASKS, "truth", "left out", "kept rows"]),
        (
            {"policy": True, "original": True, "mechanism": True},
            [*TRUE, "mechanism", *ASKS, "truth", "left out", "kept rows"],
        ),
        ({"policy": True, "original": True, "sample": 0.5}, [*BY_DESIGN, *ASKS, "truth", "left out", "kept rows"]),
        (
            {"policy": True, "original": True, "margins": (1,)},
            [*TRUE, *ASKS, "truth", "left out", "kept rows", "noise"],
        ),
        (
            {"policy": True, "original": True, "margins": (1,), "sample": 0.5},
            [*BY_DESIGN, *ASKS, "truth", "left out", "kept rows"],
        ),
        ({"original": True, "margins": (1,)}, KNOWN),
    ],
)
def test_what_is_asked_for(given: dict[str, Any], steps: list[str], run: Any) -> None:
    assert run(**given) == steps


@pytest.mark.parametrize(
    ("seen", "holds", "refused"), [(3, True, True), (5, None, True), (4, True, False), (3, False, False)]
)
def test_rows_are_as_many_as_the_manifest_says(seen: int, holds: bool | None, refused: bool, run: Any) -> None:
    if refused:
        with pytest.raises(ReleaseError, match=f"the data hold {seen} rows, the manifest says 4"):
            run(seen=seen, holds=holds)
        return
    run(seen=seen, holds=holds)


def test_columns_take_roles_trees_and_knowledge_from_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shown:
        def __init__(self, name: str, domain: Domain | None) -> None:
            self.name, self.column = name, Column(role=Role.PLAIN).over(name, domain)

        def over(self, column: Any) -> Any:
            return column

    monkeypatch.setattr(room, "with_members", lambda declared, column: column)
    monkeypatch.setattr(room, "declared_column", lambda policy, column: "with its tree")
    statements = [
        Shown("tree", Domain(("a",))),
        Shown("open", None),
        Shown("job", Domain(("b",))),
        Shown("other", None),
    ]
    attributes = {name: SimpleNamespace(role=Role.SENSITIVE) for name in ("tree", "open", "job")}
    policy: Any = SimpleNamespace(attributes=attributes, knowledge={})
    asked: Any = [
        SimpleNamespace(needs={"tree"}, on=("tree", "open")),
        SimpleNamespace(needs={"order"}, on=("job",)),
    ]
    found = room._declared_columns(SimpleNamespace(statements=statements), asked, policy)  # type: ignore[arg-type]
    assert list(found) == ["tree", "open", "job"]
    assert found["tree"] == "with its tree"
    for name in ("open", "job"):
        assert found[name].role is Role.SENSITIVE  # type: ignore[attr-defined]
    assert (found["open"].is_open, found["job"].domain.values) == (True, ("b",))  # type: ignore[attr-defined]
