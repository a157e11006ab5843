"""What may go wrong and must not: hostile labels, cancel, crash, reload, two sessions, dark, uploads."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.browser import Browser

import noren as nr
from house import LONG, House, Visit, visiting
from looks import barriers
from noren_studio.jobs import PLACES

MARKUP = (
    "<img src=x onerror=window.acted=1>",
    "<script>window.acted=1</script>",
    "{{constructor.constructor('window.acted=1')()}}",
    "[a](javascript:window.acted=1)",
    "\u202eevil",
)


@pytest.fixture
def visit(browser: Browser, house: House) -> Iterator[Visit]:
    with visiting(browser, house) as found:
        yield found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Columns, values and the file itself are named by somebody who means harm."""
    folder = tmp_path_factory.mktemp("hostile")
    target = folder / "<img src=x onerror=window.acted=1>.csv"
    rows = [f"{MARKUP[i % 5]},{MARKUP[(i // 5) % 5]},{20 + i % 40}" for i in range(300)]
    target.write_text(f"{MARKUP[0]},job {MARKUP[1]},age\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def opened(browser: Browser, house: House, hospital: Path) -> Iterator[Visit]:
    """A browser with a table, for several tests one after another."""
    with visiting(browser, house) as found:
        found.open_table(hospital)
        found.sees("Sizes of equivalence classes")
        yield found


def workers(house: House) -> set[int]:
    """Processes that the server started to work, as the kernel lists them."""

    def said(path: Path) -> bytes:
        """Nothing, if its thread or process ended meanwhile."""
        try:
            return path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return b""

    tasks = Path(f"/proc/{house.process.pid}/task").glob("*/children")
    pids = {int(pid) for one in tasks for pid in said(one).split()}
    return {pid for pid in pids if b"spawn_main" in said(Path(f"/proc/{pid}/cmdline"))}


def stop(found: set[int]) -> None:
    """Have the kernel stop processes; some may have ended by now."""
    for worker in found:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGSTOP)


def kill(found: set[int]) -> None:
    """Kill processes, and wait until none of them is alive: the one that is kept ready must not be taken for it."""
    for worker in found:
        with suppress(ProcessLookupError):
            seen = os.pidfd_open(worker)
            try:
                os.kill(worker, signal.SIGKILL)
                ends = select.poll()  # select() knows the first 1,024 files of a process only
                ends.register(seen, select.POLLIN)
                ends.poll()
            finally:
                os.close(seen)


def test_labels_and_file_names_never_become_markup(visit: Visit, hostile: Path) -> None:
    visit.open_table(hostile)
    visit.sees("Sizes of equivalence classes")
    visit.page.locator("[data-preview] .q-virtual-scroll__content tr").first.wait_for()
    for path in ("/columns", "/requirements", "/release", "/choose", "/table"):
        visit.go(path)
    visit.go("/columns")
    visit.pick_column("job")
    visit.sees("General values")
    visit.page.get_by_label("Made by").click()
    visit.page.get_by_role("option", name="a tree, edited by hand").click()
    visit.page.locator(".q-tree__node-header").first.wait_for()
    assert visit.page.evaluate("window.acted") is None
    assert visit.page.locator("main img, header img").count() == 0
    assert "onerror=window.acted" in visit.page.inner_text("body")
    for path in ("/columns", "/table", "/requirements"):
        assert "\u202e" not in visit.page.inner_text("body")
        visit.go(path)
    assert visit.abroad == []


def test_columns_that_tell_each_other_are_parted_by_a_click(visit: Visit, tmp_path: Path) -> None:
    ills = (("Flu", "J10"), ("Cold", "J00"), ("Cancer", "C50"), ("HIV", "B20"))
    rows = "".join(f"{20 + i % 37},{ill},{code}\n" for i in range(400) for ill, code in [ills[i * i % 13 % 4]])
    (tmp_path / "ills.csv").write_text(f"age,disease,icd_code\n{rows}", encoding="utf-8")
    visit.open_table(tmp_path / "ills.csv")
    visit.sees("Sizes of equivalence classes")  # no job of this session is left for tests that count on a free place
    visit.click("Hide them apart")
    visit.page.get_by_label("Undo: Hidden apart: disease, icd_code").wait_for()
    visit.sees("disclose each other")
    visit.click("Hide them together")
    visit.page.get_by_label("Undo: Hidden together: disease, icd_code").wait_for()
    visit.page.get_by_role("button", name="Hide them apart").wait_for()
    assert visit.page.locator(".n-note.bad").count() == 0


def test_two_sessions_do_not_see_each_other(opened: Visit, visit: Visit, house: House) -> None:
    visit.go("/table")
    visit.page.get_by_label("Path of a file").wait_for()
    assert "hospital" not in visit.page.inner_text("body")
    visit.go("/columns")
    visit.sees("Open a table first")
    assert visit.page.request.get(f"{house.base}/framed/report-1.html").status == 404
    opened.reload()
    opened.sees("hospital.csv")


def test_cancel_stops_the_work_and_keeps_the_edits(opened: Visit, house: House) -> None:
    opened.go("/columns")
    opened.sees("General values")
    opened.go("/choose")
    opened.click("Compare")
    opened.page.locator('[data-job="compare"]').get_by_role("button", name="Cancel").click()
    opened.sees("Cancelled. Nothing was written.")
    assert opened.page.get_by_label("Undo: open hospital.csv").is_enabled()


def test_a_crash_is_shown_and_loses_nothing(opened: Visit, house: House) -> None:
    opened.go("/choose")
    opened.click("Compare")
    opened.works("compare")
    found = workers(house)
    assert found
    kill(found)
    opened.sees("the computation ended unexpectedly (SIGKILL)")
    assert opened.page.get_by_label("Undo: open hospital.csv").is_enabled()
    opened.click("Try again")
    opened.page.locator('[data-job="compare"]').get_by_role("button", name="Cancel").click()
    opened.sees("Cancelled. Nothing was written.")


def test_a_job_waits_for_its_turn_and_is_cancelled_before_it_begins(opened: Visit, house: House) -> None:
    """Workers are stopped by the kernel, so that every place is taken for as long as the test wants."""
    taken = (
        ("/choose", "Compare", "compare"),
        ("/requirements", "Try it", "reach"),
        ("/release", "Make the release", "release"),
    )
    for path, name, job in taken[:PLACES]:
        opened.go(path)
        opened.click(name)
        opened.works(job)
        stop(workers(house))
    opened.go("/recipient")
    opened.click("Open the demo's release")
    card = opened.page.locator('[data-job="release demo"]')
    card.get_by_text("Waiting: this job is next").wait_for()
    card.get_by_role("button", name="Cancel").click()
    opened.sees("Cancelled. Nothing was written.")
    for path, _, job in taken[:PLACES]:
        opened.go(path)
        opened.page.locator(f'[data-job="{job}"]').get_by_role("button", name="Cancel").click()
        opened.sees("Cancelled. Nothing was written.")
    kill(workers(house))


def test_a_reload_resumes(opened: Visit) -> None:
    opened.go("/requirements")
    opened.click("Try it")
    running = opened.page.locator('[data-job="reach"]').get_by_role("button", name="Cancel")
    running.or_(opened.page.locator("[data-verdicts]")).first.wait_for()
    opened.reload()
    opened.page.locator("[data-verdicts]").wait_for(timeout=LONG)
    opened.reload()
    opened.page.locator("[data-verdicts]").wait_for()


def test_nothing_stands_out_to_the_right(opened: Visit) -> None:
    """Readable at 1280 x 800."""
    for path in ("/table", "/columns", "/requirements", "/choose", "/release"):
        opened.go(path)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 1280, path


def test_dark_is_readable_and_stays(opened: Visit) -> None:
    opened.go("/table")
    opened.page.get_by_label("Light or dark").click()
    opened.page.locator("body.body--dark").wait_for()
    opened.page.mouse.move(640, 780)
    for path in ("/table", "/columns", "/requirements", "/release", "/"):
        opened.go(path)
        opened.page.locator("body.body--dark").wait_for()
        assert barriers(opened.page) == [], path
    for name in ("columns", "table"):
        opened.go(f"/{name}")
        opened.page.locator("main section").nth(1).wait_for()
        opened.shot(f"{name}-dark")


def test_every_page_of_a_session_follows_an_edit(visit: Visit, hospital: Path) -> None:
    visit.open_table(hospital)
    visit.go("/columns")
    visit.pick_column("age")
    other = visit.page.context.new_page()
    other.set_default_timeout(LONG)
    other.goto(f"{visit.base}/table")
    other.wait_for_function("window.did_handshake === true")
    other.get_by_label("Undo: open hospital.csv").wait_for()
    visit.page.keyboard.press("6")
    visit.undoes("age: plain")
    other.get_by_label("Undo: age: plain").wait_for()
    other.locator("[data-columns] tr", has_text="age").get_by_text("you decided").first.wait_for()
    other.get_by_label("Undo: age: plain").click()
    visit.redoes("age: plain")


def test_pages_follow_the_system_as_long_as_no_look_is_chosen(visit: Visit) -> None:
    page = visit.page
    for look in ("dark", "light", "dark"):
        page.emulate_media(color_scheme=look)
        page.locator(f"body.body--{look}").wait_for()
    page.get_by_label("Light or dark").click()
    page.locator("body.body--light").wait_for()
    visit.reload()
    page.locator("body.body--light").wait_for()
    page.get_by_label("Light or dark").click()
    page.locator("body.body--dark").wait_for()
    page.emulate_media(color_scheme="light")
    visit.reload()
    page.locator("body.body--light").wait_for()


def test_a_table_that_cannot_be_opened_leaves_no_other_below_its_error(visit: Visit, hospital: Path) -> None:
    visit.open_table(hospital)
    visit.page.get_by_text("Open another").click()
    visit.page.get_by_label("Path of a file").fill(str(hospital.parent / "missing.csv"))
    visit.page.get_by_label("Path of a file").press("Enter")
    visit.sees("no such file")
    assert visit.page.get_by_text("What Noren understood").count() == 0
    visit.click("Back to hospital.csv")
    visit.sees("What Noren understood")
    assert visit.page.get_by_text("no such file").count() == 0


def test_a_long_name_is_cut_and_pushes_nothing_out_of_view(visit: Visit, tmp_path: Path) -> None:
    long = "the answer to a question that was written out in full as the name of its column " * 3
    target = tmp_path / "long.csv"
    target.write_text(f"{long.strip()},age\n" + "".join(f"{'ab'[at % 2]},{20 + at % 40}\n" for at in range(200)))
    visit.open_table(target)
    cell = visit.page.locator("[data-columns] tr", has_text="the answer").first
    assert cell.bounding_box()["height"] < 90
    assert cell.locator(".n-pick").first.get_attribute("title") == long.strip()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1280
    visit.go("/columns")
    row = visit.page.locator("[data-columns] tr", has_text="the answer")
    assert row.bounding_box()["height"] < 60


def test_a_file_is_uploaded_into_a_private_folder(visit: Visit, hospital: Path) -> None:
    visit.go("/table")
    visit.page.locator(".q-uploader input[type=file]").set_input_files(hospital)
    visit.sees("What Noren understood")
    visit.sees("hospital.csv")


def test_a_file_that_is_none_is_an_error_with_a_next_step(visit: Visit, tmp_path: Path) -> None:
    visit.go("/table")
    visit.page.get_by_label("Path of a file").fill(str(tmp_path / "missing.csv"))
    visit.page.get_by_label("Path of a file").press("Enter")
    visit.sees("no such file")
    visit.page.get_by_label("Path of a file").wait_for()


def test_the_keyboard_reaches_the_content_first_of_all(visit: Visit) -> None:
    visit.go("/")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.textContent").strip() == "To the content"


def test_a_file_is_picked_in_a_dialog(visit: Visit) -> None:
    visit.go("/table")
    visit.click("Browse")
    visit.page.locator(".q-dialog").get_by_text("hospital.csv").click()
    visit.sees("What Noren understood")
    visit.sees("hospital.csv")


@pytest.mark.slow
def test_the_demo_is_one_click_away(visit: Visit) -> None:
    visit.go("/table")
    visit.click("Try the demo")
    visit.sees("What Noren understood")
    visit.sees("5,000")


@pytest.mark.slow
def test_a_table_on_the_command_line_is_open_when_the_browser_comes(browser: Browser, hospital: Path) -> None:
    house = House(str(hospital))
    try:
        with visiting(browser, house, house.first) as found:
            found.sees("What Noren understood")
    finally:
        house.end()


@pytest.mark.slow
def test_from_a_file_to_a_signed_release_in_seven_clicks_with_nothing_typed_but_the_passphrase(
    browser: Browser, hospital: Path, tmp_path: Path
) -> None:
    (tmp_path / "hospital.csv").write_bytes(hospital.read_bytes())
    house = House(folder=tmp_path)
    try:
        with visiting(browser, house, house.first) as found:
            page = found.page
            found.click("Open a table")
            found.click("Browse")
            page.locator(".q-dialog").get_by_text("hospital.csv").click()
            found.sees("What Noren understood")
            page.locator(".n-rail").get_by_text("Release", exact=True).click()
            found.click("Make the release")
            page.get_by_text("make a new key").click()
            page.get_by_label("Passphrase").fill("a long one")
            found.click("Hand over")
            page.get_by_text("Handed over to").first.wait_for(timeout=LONG)
            assert found.abroad == []
        assert (tmp_path / "signing.key").stat().st_mode & 0o777 == 0o600
        verdicts = nr.verify(tmp_path / "release", signer=tmp_path / "signing.key.pub")
        assert all(one.holds is True for one in verdicts)
    finally:
        house.end()


@pytest.mark.slow
def test_the_tour_leads_through_five_pages_on_the_demo(visit: Visit) -> None:
    visit.go("/")
    visit.click("Tour of one minute")
    for path in ("columns", "requirements", "choose", "release"):
        visit.page.locator("[data-tour]").get_by_role("button", name="Next").click()
        visit.page.wait_for_url(f"**/{path}")
        visit.ready()
        assert barriers(visit.page) == []
    visit.click("End the tour")
    visit.page.locator("[data-tour]").wait_for(state="detached")
