"""Many columns: no more is drawn than is seen, and what is looked for is found and changed together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.browser import Browser

from house import House, visiting
from looks import barriers

COLUMNS, NODES = 60, 3_000
"""Columns of the table, and elements of a page that is still quick."""
SHOWN = "document.querySelectorAll('[data-columns] tbody .n-pick.n-cut').length"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wide") / "wide.csv"
    names = ["age", *(f"question_{number:03}" for number in range(1, COLUMNS))]
    rows = [[20 + at % 40, *((at * number) % 3 for number in range(1, COLUMNS))] for at in range(60)]
    target.write_text("\n".join(",".join(map(str, row)) for row in (names, *rows)) + "\n", encoding="utf-8")
    return target


def test_a_wide_table_is_searched_filtered_walked_through_and_given_roles_together(
    browser: Browser, house: House, wide: Path
) -> None:
    with visiting(browser, house) as visit:
        page = visit.page
        visit.open_table(wide)
        page.locator("[data-columns] tbody tr").nth(3).wait_for()
        assert page.evaluate("document.querySelectorAll('*').length") < NODES
        assert barriers(page) == []
        visit.go("/columns")
        page.locator("main section h2", has_text="age").first.wait_for()
        page.keyboard.press("ArrowDown")
        page.locator("main section h2", has_text="question_001").first.wait_for()
        assert page.evaluate("document.querySelectorAll('*').length") < NODES
        page.get_by_label("Search").fill("question_01")
        page.wait_for_function(f"{SHOWN} === 10")
        page.get_by_label("Tick all columns").click()
        page.get_by_label("Role of the ticked").click()
        page.get_by_role("option", name="Plain").click()
        visit.undoes("10 columns: plain")
        page.get_by_label("Search").fill("")
        page.get_by_label("Show").click()
        plain = page.get_by_role("option", name="Plain")
        count = int(plain.inner_text().split("(")[1].strip(")"))
        assert count >= 10
        plain.click()
        page.wait_for_function(f"{SHOWN} === {count}")
        page.get_by_label("Show").click()
        page.get_by_role("option", name=f"Decided for you ({COLUMNS - 10})").click()
        page.get_by_label("Accept the draft for age").click()
        page.get_by_role("button", name=f"Accept all {COLUMNS - 11} drafts").click()
        page.get_by_role("img", name="reviewed").nth(1).wait_for()
        assert visit.faults == []


CUT = """() => {
  const around = document.querySelector('[data-columns] .q-table__middle').getBoundingClientRect();
  return [...document.querySelectorAll('[data-columns] td, [data-columns] td *')]
    .filter((one) => one.getBoundingClientRect().right > around.right + 1).map((one) => one.innerText);
}"""
"""What stands in the table of columns and cannot be seen without moving it to the left."""


@pytest.mark.parametrize("width", [1280, 1024])
def test_what_was_decided_is_in_view_in_either_table_of_columns(
    browser: Browser, house: House, hospital: Path, width: int
) -> None:
    with visiting(browser, house, viewport={"width": width, "height": 800}) as visit:
        page = visit.page
        visit.open_table(hospital)
        for path in ("/table", "/columns"):
            visit.go(path)
            page.get_by_label("Accept the draft for admission_year").wait_for()
            assert page.evaluate(CUT) == [], path
        page.get_by_label("Accept the draft for admission_year").click()
        page.locator("[data-columns]").get_by_text("reviewed").wait_for()
        assert page.evaluate(CUT) == []
