"""The holder's whole way without a mouse: from a CSV to a signed release by Tab, Enter, Space, arrows and typing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Browser

import noren as nr
from house import LONG, House, Visit, visiting

STOPS = 200
"""Presses of Tab after which a reader would have given up."""
FOCUSED = """() => {
  const at = document.activeElement;
  // a menu that has just opened holds the focus itself, and its text is that of all its items
  const none = !at || at === document.body || at.getAttribute("role") === "menu";
  if (none) return {name: "", row: "", seen: true};
  const byId = (ids) => (ids || "").split(" ").map((id) => document.getElementById(id)?.innerText || "").join(" ");
  const around = at.closest("label");
  const label = around?.getAttribute("aria-label") || around?.innerText || byId(at.getAttribute("aria-labelledby"));
  const name = at.getAttribute("aria-label") || label || at.innerText || at.getAttribute("placeholder") || "";
  const box = at.getBoundingClientRect(), style = getComputedStyle(at);
  const lined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const ring = lined || style.boxShadow !== "none";
  const framed = at.closest(".q-field--focused") !== null;
  const row = at.closest("tr")?.innerText || "";
  return {name: name.trim().slice(0, 60), row, seen: box.width > 0 && (ring || framed)};
}"""


@pytest.fixture(scope="module")
def visit(browser: Browser, house: House) -> Iterator[Visit]:
    """One browser whose mouse is never used; the tests go one after another, as one person does."""
    with visiting(browser, house, house.first) as found:
        yield found


class Hands:
    """What a keyboard can do."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.page = visit, visit.page

    def focused(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate(FOCUSED)
        return found

    def to(self, name: str, row: str = "") -> None:
        """Tab until what has the focus is called so, in a row of a table that holds these words; it must be seen."""
        passed = []
        for _ in range(STOPS):
            self.page.keyboard.press("Tab")
            at = self.focused()
            passed.append(at["name"])
            if (at["name"].startswith(name) or at["name"].split("\n")[-1] == name) and row in at["row"]:
                assert at["seen"], f"nobody sees that {name} has the focus"
                return
        raise AssertionError(f"{name!r} is not reached by Tab: {passed}")

    def press(self, name: str, key: str = "Enter", row: str = "") -> None:
        self.to(name, row)
        self.page.keyboard.press(key)

    def write(self, name: str, words: str) -> None:
        self.to(name)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(words)

    def goes(self, step: str, path: str) -> None:
        """To another page by its link in the rail."""
        self.press(step)
        self.page.wait_for_url(f"**{path}")
        self.visit.ready()


@pytest.fixture
def hands(visit: Visit) -> Hands:
    return Hands(visit)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outside")


def test_a_table_is_opened(hands: Hands, hospital: Path) -> None:
    hands.press("Open a table")
    hands.page.wait_for_url("**/table")
    hands.visit.ready()
    hands.write("Path of a file", str(hospital))
    hands.page.keyboard.press("Enter")
    hands.visit.undoes("open hospital.csv")
    hands.visit.sees("Sizes of equivalence classes")


def test_a_role_is_corrected_in_its_menu_and_undone(hands: Hands) -> None:
    hands.press("Role of admission_year")
    hands.page.get_by_role("listbox").wait_for()
    hands.page.keyboard.press("ArrowDown")
    hands.page.keyboard.press("Enter")
    hands.page.get_by_role("listbox").wait_for(state="hidden")
    hands.page.get_by_label("Undo: admission_year").wait_for()
    hands.page.keyboard.press("Control+z")
    hands.page.get_by_label("Redo: admission_year").wait_for()


def test_columns_are_walked_through_and_a_hierarchy_is_typed(hands: Hands) -> None:
    hands.goes("Columns", "/columns")
    heading = hands.page.locator("main section h2").first
    first = heading.inner_text()
    hands.page.keyboard.press("ArrowDown")
    hands.page.locator("main section h2").first.filter(has_not_text=first).wait_for()
    hands.page.keyboard.press("ArrowUp")
    hands.page.locator("main section h2").first.filter(has_text=first).wait_for()
    hands.press("age")
    hands.page.locator("main section h2", has_text="age").first.wait_for()
    hands.write("Widths, each a multiple", "5, 10, 20")
    hands.visit.sees("Level 4: 1")
    hands.page.keyboard.press("Enter")
    hands.visit.undoes("age: intervals of a width 5, 10, 20")


def test_a_requirement_is_set_and_tried(hands: Hands) -> None:
    hands.goes("Requirements", "/requirements")
    hands.press("Try it")
    hands.page.locator("[data-verdicts]").wait_for(timeout=LONG)
    hands.write("k", "4")
    hands.page.keyboard.press("Enter")
    hands.visit.undoes("k-anonymity: k = 4")
    hands.visit.sees("finds at least 4 matching records")


def test_a_candidate_is_looked_at_and_adopted(hands: Hands) -> None:
    hands.goes("Choose", "/choose")
    hands.press("Compare")
    hands.page.locator("[data-map] canvas").wait_for(timeout=2 * LONG)
    hands.press("Show mondrian side by side", key="Space")
    hands.page.get_by_role("button", name="Look at mondrian").wait_for()
    hands.press("Adopt", row="mondrian")
    hands.visit.undoes("method: mondrian")


def test_a_release_is_made_signed_and_handed_over(hands: Hands, outside: Path) -> None:
    hands.goes("Release", "/release")
    hands.press("Make the release")
    hands.visit.sees("requirements, which all hold")
    hands.write("Where to", str(outside / "release"))
    hands.write("Signing key (optional)", str(outside / "our.key"))
    hands.press("make a new key", key="Space")
    hands.press("Hand over")
    hands.page.get_by_text("Handed over to").first.wait_for(timeout=LONG)
    release = nr.open_release(outside / "release")
    assert [method.name for method in release.manifest.methods] == ["mondrian"]
    assert all(v.holds is True for v in nr.verify(outside / "release", signer=outside / "our.key.pub"))


def test_the_session_is_saved_from_the_menu(hands: Hands, outside: Path) -> None:
    hands.press("Menu")
    hands.page.get_by_role("menu").wait_for()
    hands.press("Save as policy and script")
    hands.write("Folder", str(outside))
    hands.press("Write both")
    hands.visit.sees("Written to")
    assert nr.Policy.load(outside / "policy.toml").require


def test_no_mouse_was_used_and_nothing_failed(visit: Visit) -> None:
    assert visit.faults == []
    assert visit.abroad == []
