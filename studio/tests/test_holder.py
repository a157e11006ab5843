"""The holder's way through the five steps, from a CSV to a signed release, as a person goes it."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser

import noren as nr
from house import LONG, House, Visit, visiting
from looks import barriers

pytestmark = pytest.mark.slow  # at every change a browser walks through test_keyboard.py and test_pages.py


@pytest.fixture(scope="module")
def visit(browser: Browser, house: House, hospital: Path) -> Iterator[Visit]:
    """One browser, which the tests of this file use one after another, as one person does."""
    with visiting(browser, house, house.first) as found:
        yield found


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outside")


def test_the_start_shows_three_ways(visit: Visit) -> None:
    visit.sees("Publish a table about people")
    visit.shot("start")
    assert barriers(visit.page) == []


def test_step_1_the_table_is_read_and_understood(visit: Visit, hospital: Path) -> None:
    visit.open_table(hospital)
    visit.sees("its name suggests that it names a person")
    visit.sees("Sizes of equivalence classes")
    visit.page.locator("[data-preview] .q-virtual-scroll__content tr").first.wait_for()
    visit.shot("table")
    assert barriers(visit.page) == []


def test_step_1_what_was_understood_is_corrected_by_a_click(visit: Visit) -> None:
    visit.page.locator("tr", has_text="admission_year").locator("[data-role-of]").click()
    visit.page.get_by_role("option", name="Plain").click()
    visit.page.get_by_label("Undo: admission_year: plain").wait_for()
    visit.page.locator("tr", has_text="admission_year").get_by_text("you decided").wait_for()
    visit.page.keyboard.press("Control+z")
    visit.page.get_by_label("Redo: admission_year: plain").wait_for()


def test_step_2_a_role_is_changed_by_the_keyboard_and_undone(visit: Visit) -> None:
    visit.go("/columns")
    visit.pick_column("admission_year")
    visit.page.keyboard.press("6")
    visit.undoes("admission_year: plain")
    visit.sees("Published unchanged")
    visit.page.get_by_label("Undo: admission_year: plain").click()
    visit.redoes("admission_year: plain")
    visit.sees("A secret with")
    visit.page.get_by_label("Redo: admission_year: plain").click()
    visit.undoes("admission_year: plain")
    visit.sees("Published unchanged")
    visit.page.keyboard.press("Control+z")
    visit.redoes("admission_year: plain")
    visit.sees("A secret with")


def test_step_2_what_cells_are_is_corrected_by_a_click(visit: Visit) -> None:
    visit.pick_column("admission_year")
    visit.page.get_by_label("Its cells are").click()
    visit.page.get_by_role("option", name="texts").click()
    visit.page.get_by_label("Undo: admission_year: kind text").wait_for()
    visit.page.get_by_label("Before decimals stands").wait_for(state="detached")
    visit.page.keyboard.press("Control+z")
    visit.page.get_by_label("Redo: admission_year: kind text").wait_for()
    visit.page.get_by_label("Before decimals stands").wait_for()


def test_step_2_levels_follow_what_is_typed_and_enter_takes_them(visit: Visit) -> None:
    visit.go("/columns")
    visit.pick_column("age")
    field = visit.page.get_by_label("Widths, each a multiple of the previous one")
    field.fill("10, 50")
    visit.sees("Level 3: 1")
    field.fill("10, 25")
    visit.sees("is not a multiple")
    field.fill("5, 10, 20")
    visit.sees("Level 4: 1")
    visit.shot("columns")
    assert barriers(visit.page) == []
    field.press("Enter")
    visit.page.get_by_label("Undo: age: intervals of a width 5, 10, 20").wait_for()


def test_step_2_a_tree_is_edited_and_saved_for_arx(visit: Visit, outside: Path) -> None:
    visit.go("/columns")
    visit.pick_column("job")
    visit.page.get_by_label("Made by").click()
    visit.page.get_by_role("option", name="a tree, edited by hand").click()
    for job in ("Nurse", "Teacher"):
        visit.page.locator(".q-tree__node-header", has_text=job).locator(".q-checkbox").click()
    visit.page.get_by_label("Name of the node").fill("Public service")
    visit.click("Put together")
    visit.page.locator(".q-tree__node-header", has_text="Public service").first.wait_for()
    with visit.page.expect_download() as waiting:
        visit.click("Save for ARX (CSV)")
    target = outside / "job.csv"
    waiting.value.save_as(target)
    tree = nr.Hierarchy.read_csv(target)
    assert tree.above("Nurse")[0] == "Public service"
    drag_and_carry(visit)
    target.write_text(target.read_text().replace("Nurse", "Nurses", 1), encoding="utf-8")
    visit.page.locator(".q-uploader input[type=file]").first.set_input_files(target)
    visit.undoes("job: a file in ARX's layout")
    visit.sees("Without a place: Nurse")
    visit.sees("Not in the table: Nurses")
    for _ in range(5):
        visit.page.keyboard.press("Control+z")
    visit.sees("No hierarchy: numbers become")


def drag_and_carry(visit: Visit) -> None:
    """A value is dragged onto a node, another is moved by keys; both can be undone."""
    node = visit.page.locator(".n-node", has_text="Public service").first
    node.wait_for()
    visit.page.locator(".n-node", has_text="Builder").last.drag_to(node)
    visit.page.get_by_label("Undo: job: Builder under Public service").wait_for()
    visit.shot("columns-tree")
    carried = visit.page.locator(".n-node", has_text="Driver").last
    carried.focus()
    carried.press("m")
    visit.page.locator(".n-node.n-held", has_text="Driver").wait_for()
    node.focus()
    node.press("m")
    visit.page.get_by_label("Undo: job: Driver under Public service").wait_for()
    label = node.inner_text()
    visit.page.keyboard.press("Control+z")
    visit.page.get_by_label("Redo: job: Driver under Public service").wait_for()
    assert node.inner_text() != label
    visit.page.keyboard.press("Control+y")
    visit.page.get_by_label("Undo: job: Driver under Public service").wait_for()


def test_step_3_requirements_say_what_they_promise_and_who_is_not_covered(visit: Visit) -> None:
    visit.go("/requirements")
    field = visit.page.locator('[data-requirement="k-anonymity"] input').first
    field.fill("4")
    field.press("Enter")
    visit.sees("finds at least 4 matching records")
    visit.sees("! not covered")
    visit.click("Try it")
    visit.page.locator("[data-verdicts]").wait_for(timeout=LONG)
    assert visit.page.locator("[data-verdicts] .n-tag.bad").count() == 0
    visit.shot("requirements")
    assert barriers(visit.page) == []


def test_step_4_a_candidate_is_compared_and_adopted(visit: Visit) -> None:
    visit.go("/choose")
    visit.click("Compare")
    visit.page.locator("[data-map] canvas").wait_for(timeout=2 * LONG)
    row = visit.page.locator("tr", has=visit.page.get_by_text("mondrian", exact=True)).first
    row.locator(".q-checkbox").click()
    visit.click("Look at", exact=False)
    visit.page.get_by_text("An excerpt of rows").wait_for(timeout=LONG)
    visit.page.evaluate("window.scrollTo(0, 0)")
    visit.shot("choose")
    assert barriers(visit.page) == []
    row.get_by_role("button", name="Adopt").click()
    visit.page.get_by_label("Undo: method: mondrian").wait_for()
    row.get_by_text("adopted", exact=True).wait_for()
    visit.page.get_by_role("link", name="Next: make the release").wait_for()
    visit.page.keyboard.press("Control+z")
    visit.page.get_by_label("Redo: method: mondrian").wait_for()


def test_step_4_the_map_and_the_lattice_are_clicked_in(visit: Visit) -> None:
    ticked = visit.page.locator("tr.on td:nth-child(3)")
    before = set(ticked.all_inner_texts())
    names = visit.page.evaluate(
        """() => getElement(Number(document.querySelector('[data-map]').id.slice(1))).chart
          .getOption().series[1].data.map((one) => one.name)"""
    )
    spots = [visit.point("map", 1, at) for at in range(len(names))]
    fresh = [at for at, name in enumerate(names) if not any(name in one for one in before)]
    wanted = max(fresh, key=lambda at: min(math.dist(spots[at], spot) for spot in spots if spot is not spots[at]))
    visit.page.mouse.click(*spots[wanted])
    ticked.filter(has_text=names[wanted]).first.wait_for()
    visit.click("Find the best levels")
    visit.page.locator("[data-lattice] canvas").wait_for(timeout=LONG)
    visit.page.mouse.click(*visit.point("lattice", 0, 0))
    visit.page.get_by_label("Undo: method: incognito", exact=False).wait_for()
    visit.point("lattice", 0, 0)
    visit.shot("choose-lattice")
    first = visit.page.locator("section:has([data-lattice]) tbody tr").first
    assert "on" in first.get_attribute("class").split()
    visit.page.keyboard.press("Control+z")
    visit.page.get_by_label("Redo: method: incognito", exact=False).wait_for()
    first.get_by_role("button", name="Adopt").focus()
    visit.page.keyboard.press("Enter")
    visit.page.get_by_label("Undo: method: incognito", exact=False).wait_for()
    visit.page.keyboard.press("Control+z")
    visit.page.get_by_label("Redo: method: incognito", exact=False).wait_for()


def test_a_passing_remark_takes_no_click(visit: Visit) -> None:
    """What it lies over is clicked, as if it were not there."""
    visit.page.keyboard.press("Control+y")
    visit.page.get_by_label("Undo: method: incognito", exact=False).wait_for()
    over = """() => {
      const seen = [...document.querySelectorAll('.q-notification')];
      return seen.length && seen.map((one) => {
        const box = one.getBoundingClientRect();
        return document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2).some((at) => one.contains(at));
      });
    }"""
    assert True not in visit.page.wait_for_function(over).json_value()
    visit.page.keyboard.press("Control+z")
    visit.page.get_by_label("Redo: method: incognito", exact=False).wait_for()


def test_step_5_a_release_is_made_attacked_signed_and_handed_over(visit: Visit, outside: Path, hospital: Path) -> None:
    visit.go("/release")
    visit.sees("Stays with you")
    visit.click("Make the release")
    visit.sees("requirements, which all hold")
    visit.page.evaluate("window.scrollTo(0, 0)")
    visit.shot("release")
    assert barriers(visit.page) == []
    visit.click("Attack it and write the report")
    visit.page.locator("[data-attacks]").wait_for(timeout=2 * LONG)
    visit.page.frame_locator("[data-report]").get_by_text("Holder only").first.wait_for()
    visit.page.get_by_label("Where to").fill(str(outside / "release"))
    visit.page.get_by_label("Signing key (optional)").fill(str(outside / "our.key"))
    visit.page.get_by_text("make a new key").click()
    visit.click("Hand over")
    visit.page.get_by_text("Handed over to").first.wait_for(timeout=LONG)
    release = nr.open_release(outside / "release")
    assert all(verdict.holds for verdict in release.verdicts)
    assert {"patient_id", "name"}.isdisjoint(release.columns)
    assert nr.PublicKey.load(outside / "our.key.pub").fingerprint in visit.page.inner_text("main")
    assert all(v.holds is True for v in nr.verify(outside / "release", signer=outside / "our.key.pub"))


def test_a_zip_is_the_same_directory_in_one_file(visit: Visit, outside: Path) -> None:
    import zipfile

    visit.page.get_by_label("Where to").fill(str(outside / "handed.zip"))
    visit.page.get_by_label("Signing key (optional)").fill("")
    visit.click("Hand over")
    visit.page.get_by_text("handed.zip, not signed").first.wait_for(timeout=LONG)
    with zipfile.ZipFile(outside / "handed.zip") as file:
        file.extractall(outside / "unpacked")
    assert all(v.holds is True for v in nr.verify(outside / "unpacked" / "handed"))
    assert [path.name for path in outside.iterdir() if path.name.startswith(".")] == []


def test_what_exists_is_never_overwritten(visit: Visit, outside: Path) -> None:
    visit.page.get_by_label("Where to").fill(str(outside / "release"))
    visit.click("Hand over")
    visit.page.locator(".n-note.bad").first.wait_for(timeout=LONG)


def test_the_saved_script_makes_the_same_release(visit: Visit, outside: Path, hospital: Path) -> None:
    """Policy and verdicts of the script, run by Python alone, are those of the session."""
    folder = outside / "saved"
    folder.mkdir()
    visit.page.get_by_label("Menu", exact=True).click()
    visit.page.locator(".q-menu .q-item", has_text="Save as policy and script").click()
    visit.page.get_by_label("Folder").fill(str(folder))
    visit.click("Write both")
    visit.sees("Written to")
    done = subprocess.run(
        [sys.executable, str(folder / "release.py")], capture_output=True, text=True, timeout=300, check=True
    )
    again, first = nr.open_release(folder / "release"), nr.open_release(outside / "release")
    asked = [(v.model, v.column, v.required, v.holds) for v in again.verdicts]
    assert asked == [(v.model, v.column, v.required, v.holds) for v in first.verdicts]
    assert again.manifest.requirements == first.manifest.requirements
    assert str(hospital) in (folder / "release.py").read_text()
    assert "The release is in" in done.stdout


def test_no_request_left_the_machine_and_nothing_went_wrong_in_the_page(visit: Visit, house: House) -> None:
    assert len(visit.requests) > 50
    assert visit.abroad == []
    assert visit.faults == []


def test_no_cell_is_in_the_log(visit: Visit, house: House, hospital: Path) -> None:
    """Names of people stand in the table and in the page, never in what the server writes."""
    cells = {cell for line in hospital.read_text().splitlines()[1:50] for cell in line.split(",")[:2]}
    assert len(cells) > 50
    log = "".join(house.log)
    assert [cell for cell in cells if cell in log] == []
