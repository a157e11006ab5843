"""The recipient's way in a real browser: from a release to a chart, a file and the Python that gives the same."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.browser import Browser

import noren as nr
from house import LONG, House, Visit, visiting
from looks import barriers
from noren_studio.theme import DARK, LIGHT
from published import Hospital, damaged, forged, hostile, publish, survey

pytestmark = pytest.mark.slow  # at every change a browser walks through test_keyboard.py and test_pages.py

FILTERS = "Only records where"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Hospital:
    return publish(tmp_path_factory.mktemp("hospital"))


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey(tmp_path_factory.mktemp("survey"))


@pytest.fixture(scope="module")
def house(published: Hospital) -> Iterator[House]:
    """A studio that was started with a release."""
    found = House(str(published.release))
    yield found
    found.end()


@pytest.fixture(scope="module")
def visit(browser: Browser, house: House) -> Iterator[Visit]:
    """One browser, which the tests of this file use one after another, as one person does."""
    with visiting(browser, house, house.first, accept_downloads=True) as found:
        yield found


def heard(visit: Visit, words: str) -> None:
    """Wait until the studio has made an edit: it can then be undone by its name."""
    visit.page.get_by_label(re.compile(f"^Undo: {re.escape(words)}")).wait_for(timeout=LONG)


def choose(visit: Visit, label: str, *options: str, told: str = "") -> None:
    """Choose from a menu, one option or several, and wait until that was heard."""
    visit.page.get_by_label(label, exact=True).first.click()
    for at, option in enumerate(options):
        visit.page.get_by_role("option", name=option).first.click()
        heard(visit, f"{told or label}: {', '.join(options[: at + 1])}")
    visit.page.keyboard.press("Escape")
    visit.page.locator(".q-menu").wait_for(state="hidden")


def kind(visit: Visit, name: str, label: str) -> None:
    """Another kind of question; its form has a field of this name."""
    visit.click(name)
    visit.page.get_by_label(label, exact=True).first.wait_for()


def open_release(visit: Visit, place: Path) -> None:
    visit.go("/recipient")
    field, other = visit.page.get_by_label("Folder of a release"), visit.page.get_by_text("Open another release")
    field.or_(other).first.wait_for(timeout=LONG)
    if not field.is_visible():
        other.click()
    field.fill(str(place))
    field.press("Enter")


def estimate(visit: Visit, text: str) -> None:
    """Press the button and wait until the answer to this question is there."""
    visit.click("Estimate")
    visit.page.locator("[data-answer]").get_by_text(text, exact=True).wait_for(timeout=LONG)


def hovered(visit: Visit, mark: Any) -> list[str]:
    """What a chart says of a mark while the pointer stands on it."""
    visit.page.locator("[data-status] .q-spinner").wait_for(state="detached")  # what stands below it may move
    mark.hover(position={"x": 2, "y": 2})  # not the middle: the line of the interval may lie over it
    tip = visit.page.locator("[data-chart] svg g text", has_text="interval:")
    tip.first.wait_for()
    texts = visit.page.locator("[data-chart] svg text").all_text_contents()
    at = next(at for at, text in enumerate(texts) if text.startswith("interval:"))
    first = max(at for at in range(at) if texts[at].startswith("estimate: ")) - 1
    while first > 0 and ": " in texts[first - 1]:
        first -= 1
    return texts[first:]


def python_of(visit: Visit) -> dict[str, Any]:
    """What the shown Python computes."""
    names: dict[str, Any] = {}
    exec(visit.page.locator("[data-answer] .n-code").inner_text(), names)
    return names


def downloaded(visit: Visit, kind: str, verb: str = "estimate") -> bytes:
    with visit.page.expect_download(timeout=LONG) as waiting:
        visit.page.get_by_label(f"Download as {kind}").click()
    assert waiting.value.suggested_filename == f"noren-{verb}.{kind.lower()}"
    return Path(waiting.value.path()).read_bytes()


def test_a_release_that_the_command_line_named_is_told_in_ten_lines(visit: Visit, published: Hospital) -> None:
    visit.page.locator("[data-release]").wait_for(timeout=LONG)
    assert visit.page.locator(".n-facts dt").count() == 10
    visit.sees("800")
    visit.sees("5: 2 as they are, 3 hidden")
    visit.sees(f"Signed by {nr.PublicKey.load(published.key).fingerprint}")
    visit.sees("✓ Verified")


def test_a_first_chart_is_there_without_a_question(visit: Visit) -> None:
    visit.page.locator("[data-chart] svg").wait_for(timeout=LONG)
    visit.page.wait_for_function("document.querySelector('[data-chart] svg').getBoundingClientRect().width > 300")
    visit.shot("recipient")
    assert barriers(visit.page) == []


def test_hovering_over_a_mark_tells_estimate_interval_and_error(visit: Visit, published: Hospital) -> None:
    wanted = nr.open_release(published.release).estimate(["age"]).frame.row(0, named=True)
    told = hovered(visit, visit.page.locator("[data-chart] svg path[fill='#0072b2']").first)
    assert told[0] == f"age: {wanted['age']}"
    assert told[1].startswith("estimate: ")
    assert float(told[1].removeprefix("estimate: ")) == pytest.approx(wanted["count"], rel=1e-3)
    low, high = told[2].removeprefix("interval: ").split(" to ")
    assert [float(low), float(high)] == pytest.approx([wanted["low"], wanted["high"]], rel=1e-3)
    assert float(told[3].removeprefix("std. error: ")) == pytest.approx(wanted["std_error"], rel=1e-3)


def test_a_cross_table_of_some_records_is_what_the_library_answers(
    visit: Visit, published: Hospital, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit.page.get_by_label("Rows", exact=True).first.click()
    visit.page.get_by_role("option", name="age", exact=True).click()
    heard(visit, "Rows: none")
    visit.page.keyboard.press("Escape")
    visit.page.locator(".q-menu").wait_for(state="hidden")
    choose(visit, "Rows", "job")
    choose(visit, "Columns", "disease@2")
    visit.click("Add a filter", exact=False)
    heard(visit, "Add a filter")
    choose(visit, "Column", "admission_year", told=FILTERS)
    choose(visit, "Values", "2018", "2019", "2021", "2022", told=FILTERS)
    where = {"admission_year": ["2018", "2019", "2021", "2022"]}
    estimate(visit, f"release.estimate(['job', 'disease@2'], where={where!r})")
    wanted = nr.open_release(published.release).estimate(["job", "disease@2"], where=where).frame
    csv = pl.read_csv(io.BytesIO(downloaded(visit, "CSV")))
    assert csv.columns == wanted.columns
    assert csv["job"].to_list() == wanted["job"].to_list()
    for name in ("count", "std_error", "low", "high"):
        assert csv[name].to_list() == pytest.approx(wanted[name].to_list(), rel=1e-9)
    monkeypatch.chdir(tmp_path)
    assert python_of(visit)["answer"].frame.equals(wanted)
    assert (tmp_path / "answer.png").read_bytes().startswith(b"\x89PNG")
    heads = visit.page.locator("[data-answer] thead th").all_inner_texts()
    assert heads == ["job", *wanted["disease@2"].unique(maintain_order=True)]
    counts = [f"{one:,.0f}" for one in wanted["count"]]
    visit.page.wait_for_function(
        """(wanted) => {
          const seen = [...document.querySelectorAll('[data-chart] svg text')].map((one) => one.textContent);
          return seen.filter((one) => /^\\d+$/.test(one)).slice(0, wanted.length).join() === wanted.join();
        }""",
        arg=counts,
    )
    visit.shot("recipient-table")
    assert barriers(visit.page) == []


def test_charts_are_taken_along_as_files(visit: Visit) -> None:
    assert downloaded(visit, "PNG").startswith(b"\x89PNG")
    svg = downloaded(visit, "SVG")
    assert svg.startswith(b"<svg")
    assert b"Cancers" in svg


def test_every_change_of_the_question_is_undone_and_done_again(visit: Visit) -> None:
    visit.page.get_by_label("Remove this filter").click()
    visit.page.locator("[data-filter]").wait_for(state="detached")
    visit.page.get_by_label("Undo: Remove this filter").click()
    visit.page.locator("[data-filter]").wait_for()
    visit.page.get_by_label("Redo: Remove this filter").click()
    visit.page.locator("[data-filter]").wait_for(state="detached")


def test_a_reload_finds_question_and_answer_again(visit: Visit) -> None:
    visit.page.reload()
    visit.page.locator("[data-chart] svg").wait_for(timeout=LONG)
    assert "job" in visit.page.locator("[data-ask] .q-chip").first.inner_text()


def test_means_by_group(visit: Visit, published: Hospital, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind(visit, "Number", "Of column")
    choose(visit, "Of column", "age")
    choose(visit, "For every group of", "admission_year/2")
    estimate(visit, "release.mean('age', by=['admission_year/2'])")
    wanted = nr.open_release(published.release).mean("age", by=["admission_year/2"]).frame
    monkeypatch.chdir(tmp_path)
    assert python_of(visit)["answer"].frame.equals(wanted)
    visit.reads("[data-answer] tbody tr td:nth-child(2)", [f"{one:.4g}" for one in wanted["mean"]])


def test_a_model_that_cannot_be_fitted_says_why(visit: Visit) -> None:
    kind(visit, "Model", "Or a formula")
    field = visit.page.get_by_label("Or a formula")
    field.fill("age ~ nothing_here")
    field.press("Enter")
    visit.click("Estimate")
    visit.page.locator("main [role=alert]").get_by_text("nothing_here").first.wait_for(timeout=LONG)


def test_plausible_tables_are_drawn(visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind(visit, "Tables", "Plausible tables")
    field = visit.page.get_by_label("Plausible tables")
    field.fill("2")
    field.press("Enter")
    heard(visit, "Plausible tables: 2")
    estimate(visit, "release.impute(2, seed=1)")
    visit.page.locator("[data-answer] img.n-only-light").wait_for()
    csv = pl.read_csv(io.BytesIO(downloaded(visit, "CSV", "impute")), infer_schema=False)
    monkeypatch.chdir(tmp_path)
    answer = python_of(visit)["answer"]
    assert csv.height == 2 * 800
    assert csv.equals(answer.frame.cast(pl.String))


def test_the_dark_look_shows_a_dark_chart(visit: Visit) -> None:
    kind(visit, "Count", "Rows")
    estimate(visit, "release.estimate(['job', 'disease@2'])")
    visit.page.locator(f"[data-chart] svg path[fill='{LIGHT['surface']}']").or_(
        visit.page.locator(f"[data-chart] svg path[stroke='{LIGHT['surface']}']")
    ).first.wait_for()
    visit.page.get_by_label("Light or dark").click()
    visit.page.locator(f"[data-chart] svg path[stroke='{DARK['surface']}']").first.wait_for()
    visit.page.locator("[data-answer]").scroll_into_view_if_needed()
    visit.shot("recipient-dark")
    assert barriers(visit.page) == []
    visit.page.get_by_label("Light or dark").click()
    visit.page.locator(f"[data-chart] svg path[stroke='{LIGHT['surface']}']").first.wait_for()


def test_survey_weights_are_used_and_can_be_left_out(visit: Visit, surveyed: Path) -> None:
    open_release(visit, surveyed / "weighed")
    visit.page.locator("[data-answer]").get_by_text("release.estimate(['job'])", exact=True).wait_for(timeout=LONG)
    visit.page.locator("[data-chart] svg").wait_for(timeout=LONG)
    visit.sees("Survey weights are used")
    visit.page.get_by_text("count records instead of weighted people").click()
    heard(visit, "count records instead of weighted people: True")
    estimate(visit, "release.estimate(['job'], weighted=False)")
    release = nr.open_release(surveyed / "weighed")
    wanted = release.estimate(["job"], weighted=False).frame["count"]
    assert wanted.sum() < 0.8 * release.estimate(["job"]).frame["count"].sum()
    visit.reads("[data-answer] tbody tr td:nth-child(2)", [f"{one:.4g}" for one in wanted])


def test_counts_that_were_published_with_noise_are_shown(visit: Visit, surveyed: Path) -> None:
    open_release(visit, surveyed / "counted")
    visit.page.locator("[data-answer]").get_by_text("release.estimate(['job'])", exact=True).wait_for(timeout=LONG)
    visit.page.locator("[data-chart] svg").wait_for(timeout=LONG)
    kind(visit, "Margins", "Counts by")
    estimate(visit, "release.margins[0]")
    visit.sees("Every count has its own noise (epsilon 1)")
    wanted = nr.open_release(surveyed / "counted").margins[0]
    visit.reads("[data-answer] tbody tr td:nth-child(3)", [f"{one:.4g}" for one in wanted["count"]])
    assert python_of(visit)["answer"].equals(wanted)


def test_a_release_that_claims_more_than_it_keeps_is_called_forged(
    visit: Visit, published: Hospital, tmp_path: Path
) -> None:
    open_release(visit, forged(published.release, tmp_path / "forged"))
    visit.page.locator("[data-status]").get_by_text("✗ Does not meet its claims").or_(
        visit.page.locator("[data-status]").get_by_text("Forged or damaged: do not use it")
    ).wait_for(timeout=LONG)
    visit.sees("Not signed")
    assert "✓ Verified" not in visit.page.inner_text("main")


@pytest.mark.parametrize("how", ["one byte", "signature"])
def test_a_release_that_was_changed_is_not_opened(visit: Visit, published: Hospital, tmp_path: Path, how: str) -> None:
    target = damaged(published.release, tmp_path / how)
    if how == "signature":
        (target / "data.parquet").write_bytes((published.release / "data.parquet").read_bytes())
        descriptor = target / "datapackage.json"
        descriptor.write_text(descriptor.read_text().replace('"records": 800', '"records": 801'))
    open_release(visit, target)
    heard(visit, f"open release {how}")  # the one before it was refused with the same words
    visit.page.locator("[data-refused]").get_by_text("Forged or damaged: do not use it").wait_for(timeout=LONG)
    assert visit.page.locator("[data-answer]").count() == 0


def test_a_wrong_path_is_not_called_forged(visit: Visit, tmp_path: Path) -> None:
    open_release(visit, tmp_path / "nowhere")
    visit.page.locator("[data-refused]").get_by_text("It cannot be opened").wait_for(timeout=LONG)


def test_hostile_labels_do_not_run(visit: Visit, tmp_path: Path) -> None:
    open_release(visit, hostile(tmp_path))
    visit.page.locator("[data-chart] svg").wait_for(timeout=LONG)
    hovered(visit, visit.page.locator("[data-chart] svg path[fill='#0072b2']").first)
    visit.page.get_by_text("Columns and how they are published").click()
    choose(visit, "Columns", "<script>")
    visit.click("Estimate")
    visit.page.locator("[data-answer] thead th").nth(5).wait_for(timeout=LONG)
    visit.click("Add a filter", exact=False)
    heard(visit, "Add a filter")
    choose(visit, "Column", "job <img", told=FILTERS)
    choose(visit, "Values", "<img src=x", told=FILTERS)
    kind(visit, "Number", "Of column")
    choose(visit, "Of column", "job <img")
    visit.page.get_by_label("Share of the value").wait_for()
    assert visit.page.evaluate("window.acted") is None
    assert visit.page.locator("main img:not(.n-chart)").count() == 0
    body = visit.page.inner_text("body")
    assert "onerror=window.acted" in body
    assert "\u202e" not in body


def test_nothing_left_the_machine_and_nothing_failed(visit: Visit, house: House) -> None:
    assert visit.abroad == []
    assert visit.faults == []
    assert all("Noren Studio" in line or "one browser" in line for line in house.log)
