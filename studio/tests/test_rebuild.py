"""A page that is built anew keeps what is still there: no click and no typed word is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser

from house import House, Visit, visiting

pytestmark = pytest.mark.slow  # at every change a browser walks through test_keyboard.py and test_pages.py


@pytest.fixture(scope="module")
def visit(browser: Browser, house: House, hospital: Path) -> Iterator[Visit]:
    """A holder who has changed something, so that there is something to undo."""
    with visiting(browser, house) as found:
        found.open_table(hospital)
        found.go("/columns")
        found.pick_column("admission_year")
        found.page.keyboard.press("6")
        found.undoes("admission_year: plain")
        yield found


def test_a_button_may_be_pressed_before_and_let_go_after_the_page_was_built_anew(visit: Visit) -> None:
    page = visit.page
    visit.go("/auditor")
    box = page.get_by_role("button", name="A table made elsewhere").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.keyboard.press("Control+z")
    page.get_by_label("Redo: admission_year: plain").wait_for()
    page.mouse.up()
    page.get_by_label("Path of a CSV").wait_for()
    page.get_by_label("Undo: A table made elsewhere").click()
    page.get_by_label("Redo: A table made elsewhere").wait_for()


def test_clicks_on_their_way_while_the_page_is_built_anew_are_heard(visit: Visit) -> None:
    """The second and third are sent for elements that the first has replaced by the time they come."""
    visit.go("/columns")
    visit.pick_column("age")
    visit.page.evaluate(
        """() => {
          const row = (name) => [...document.querySelectorAll('[data-columns] .n-pick.n-cut')].find(
            (one) => one.textContent.includes(name));
          for (const name of ['job', 'disease', 'admission_year']) row(name).click();
        }"""
    )
    visit.page.locator("main section h2", has_text="admission_year").wait_for()
    assert "admission_year" in visit.page.locator("[data-columns] .n-pick[aria-current=true]").inner_text()


def test_half_a_word_and_the_focus_stay(visit: Visit) -> None:
    page = visit.page
    visit.go("/choose")
    field = page.get_by_label("Parameters to sweep")
    field.click()
    page.keyboard.type("k=3,")
    page.evaluate("document.querySelector('[aria-label=\"Light or dark\"]').click()")
    page.locator("body.body--dark").wait_for()
    page.evaluate("document.querySelector('[aria-label=\"Light or dark\"]').click()")
    page.locator("body.body--light").wait_for()
    page.keyboard.type("5")
    assert field.input_value() == "k=3,5"


def test_what_is_gone_is_not_taken_for_something_else(visit: Visit) -> None:
    """Requirements of one kind differ by their columns and places; removing the first must not remove the second."""
    page = visit.page
    visit.go("/requirements")
    cards = page.locator("[data-requirement]")
    before = cards.count()
    page.evaluate(
        """() => {
          const buttons = [...document.querySelectorAll('[data-requirement] .n-button.plain')];
          const remove = buttons.find((one) => one.innerText.includes('Remove'));
          remove.click(); remove.click();
        }"""
    )
    page.get_by_label("Undo: without", exact=False).wait_for()
    assert cards.count() == before - 1


def test_what_was_picked_and_not_added_yet_stays(visit: Visit) -> None:
    """A page is built anew whenever a job ends, also while somebody is on the way from a menu to its button."""
    page = visit.page
    visit.go("/requirements")
    page.get_by_label("Model", exact=True).click()
    page.get_by_role("option", name="t-closeness").first.click()
    page.locator(".q-menu").wait_for(state="hidden")
    for look in ("dark", "light"):
        page.get_by_label("Light or dark").click()
        page.locator(f"body.body--{look}").wait_for()
    visit.click("Add")
    visit.undoes("with t-closeness")
