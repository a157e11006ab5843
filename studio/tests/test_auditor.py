"""The auditor's way in a real browser: verify, attack, a second release, and a table that Noren did not make."""

from __future__ import annotations

import csv
import io
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser

import noren as nr
from house import LONG, House, Visit, visiting
from looks import barriers
from published import Hospital, again, forged, publish, stricter

pytestmark = pytest.mark.slow  # at every change a browser walks through test_keyboard.py and test_pages.py


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Hospital:
    return publish(tmp_path_factory.mktemp("hospital"))


@pytest.fixture(scope="module")
def visit(browser: Browser, house: House, published: Hospital) -> Iterator[Visit]:
    """One auditor, who has opened the release."""
    with visiting(browser, house, accept_downloads=True) as found:
        found.go("/auditor")
        open_release(found, published.release)
        found.page.locator("[data-attack]").first.wait_for(timeout=LONG)
        yield found


def open_release(visit: Visit, place: Path) -> None:
    field = visit.page.get_by_label("Folder of a release")
    field.fill(str(place))
    field.press("Enter")


def give(visit: Visit, label: str, path: Path | str) -> None:
    """Name something that the auditor has besides; what was named can be undone, which shows that it was heard."""
    field = visit.page.get_by_label(label, exact=True)
    field.fill(str(path))
    field.press("Enter")
    name = Path(path).name or "none"
    visit.page.get_by_label(f"Undo: {label}: {name}").wait_for()


def verify(visit: Visit, says: str) -> None:
    """Verify with what was named, and wait for what that must say: an older answer stays until the new one is there."""
    visit.page.locator("[data-verify]").get_by_role("button", name="Verify").click()
    visit.page.locator("[data-verify]").get_by_text(says).wait_for(timeout=LONG)
    visit.page.locator('[data-job="audit verify"]').wait_for(state="detached")


def only(visit: Visit, *attacks: str) -> None:
    """Tick these attacks and no other."""
    visit.click("None")
    visit.page.get_by_label("Undo: Attacks: none").wait_for()
    for at, name in enumerate(attacks):
        visit.page.get_by_role("checkbox", name=name, exact=True).click()
        visit.page.get_by_label(f"Undo: Attacks: {', '.join(attacks[: at + 1])}").wait_for()


def test_every_attack_states_what_its_adversary_knows(visit: Visit, published: Hospital) -> None:
    able = nr.audit.applicable(nr.open_release(published.release))
    shown = [one.get_attribute("data-attack") for one in visit.page.locator("[data-attack]").all()]
    assert shown == able
    for name in able:
        text = visit.page.locator(f'[data-attack="{name}"]').inner_text()
        assert f"The adversary {nr.audit.ATTACKS[name].adversary}." in text


def test_the_claims_are_computed_again(visit: Visit, published: Hospital) -> None:
    verify(visit, "Every requirement holds.")
    assert visit.page.locator("[data-verify] [data-verdicts] tbody tr").count() == len(nr.verify(published.release))
    assert barriers(visit.page) == []


def test_a_stricter_policy_fails(visit: Visit, published: Hospital) -> None:
    give(visit, "Policy (policy.toml)", stricter(published))
    verify(visit, "A requirement does not hold.")
    visit.page.locator("[data-verify]").get_by_text("✗ fails").first.wait_for()


def test_another_signer_is_refused(visit: Visit, published: Hospital, tmp_path: Path) -> None:
    give(visit, "Policy (policy.toml)", published.policy)
    nr.SigningKey.create(tmp_path / "other.key")
    give(visit, "Public key of the signer (.pub)", tmp_path / "other.key.pub")
    verify(visit, "Forged or damaged: do not use it")
    give(visit, "Public key of the signer (.pub)", published.key)
    verify(visit, "Signed by the key that you gave.")


def test_an_attack_with_an_option_gains_what_the_library_says(visit: Visit, published: Hospital) -> None:
    give(visit, "Original table", published.table)
    only(visit, "homogeneity")
    card = visit.page.locator('[data-attack="homogeneity"]')
    card.get_by_text("Options").click()
    field = card.get_by_label("threshold", exact=True).first
    field.fill("0.25")
    field.press("Enter")
    visit.page.get_by_label("Undo: homogeneity: threshold = 0.25").wait_for()
    visit.click("Run the attacks")
    visit.page.locator("[data-gains]").wait_for(timeout=2 * LONG)
    found = nr.attack(
        published.release, "homogeneity", original=published.table, policy=published.policy, threshold=0.25
    )
    shown = visit.page.locator("[data-gains] .n-table").first.inner_text()
    for result in found:
        share = result.scenario("release").summary["right"]
        assert f"{share:.1%}" in shown
    assert visit.page.locator("[data-gains] .n-meter.before").count() == len(found)
    visit.page.locator("[data-gains]").get_by_text("for the holder only").first.wait_for()
    script = visit.page.locator("[data-gains] .n-code").inner_text()
    assert (
        f"'homogeneity', policy={str(published.policy)!r}, original={str(published.table)!r}, threshold=0.25" in script
    )
    visit.page.wait_for_function("document.querySelector('[data-gains]').getBoundingClientRect().top < 120")
    visit.shot("auditor-gains")
    assert barriers(visit.page) == []


def test_the_figures_are_taken_along(visit: Visit, published: Hospital) -> None:
    with visit.page.expect_download(timeout=LONG) as waiting:
        visit.page.locator("[data-gains]").get_by_label("Download as CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    wanted = nr.attack(
        published.release, "homogeneity", original=published.table, policy=published.policy, threshold=0.25
    ).frame
    assert [row["scenario"] for row in rows] == wanted["scenario"].to_list()
    assert [float(row["max_belief"]) for row in rows] == pytest.approx(wanted["max_belief"].to_list())


def test_a_second_release_is_intersected(visit: Visit, published: Hospital, tmp_path: Path) -> None:
    second = again(published, tmp_path)
    give(visit, "Second release of the same people", second)
    only(visit, "intersection")
    visit.click("Run the attacks")
    found = nr.attack(
        published.release, "intersection", original=published.table, policy=published.policy, other=str(second)
    )
    visit.page.locator("[data-gains]").get_by_text("2 releases").first.wait_for(timeout=2 * LONG)
    shown = visit.page.locator("[data-gains] .n-table").first.inner_text()
    for result in found:
        assert f"{result.scenario('releases-2').summary['right']:.1%}" in shown


def test_the_dark_look_is_readable(visit: Visit) -> None:
    visit.page.get_by_label("Light or dark").click()
    visit.page.locator("body.body--dark").wait_for()
    visit.page.locator("[data-gains] img.n-only-dark").first.wait_for()
    visit.shot("auditor-dark")
    assert barriers(visit.page) == []
    visit.page.get_by_label("Light or dark").click()
    visit.page.locator("body.body--light").wait_for()


def test_a_release_in_one_file_is_unpacked_and_verified(visit: Visit, published: Hospital, tmp_path: Path) -> None:
    packed = Path(shutil.make_archive(str(tmp_path / "handed"), "zip", published.release.parent, "release"))
    give(visit, "Original table", "")
    visit.page.get_by_text("Open another release").click()
    open_release(visit, packed)
    visit.page.get_by_label("Undo: open release release").wait_for(timeout=LONG)
    visit.page.locator("[data-status]").get_by_text("✓ Verified").wait_for(timeout=LONG)
    verify(visit, "Signed by the key that you gave.")
    visit.page.get_by_label("Folder of a release").wait_for(state="hidden")


def test_a_file_that_is_no_release_is_refused(visit: Visit, tmp_path: Path) -> None:
    odd = tmp_path / "odd.zip"
    with zipfile.ZipFile(odd, "w") as file:
        file.writestr("../datapackage.json", "{}")
    visit.page.get_by_text("Open another release").click()
    open_release(visit, odd)
    visit.sees("names that lead elsewhere")
    visit.page.get_by_label("Folder of a release").wait_for()  # what was typed can be mended


def test_a_forged_release_is_called_so(visit: Visit, published: Hospital, tmp_path: Path) -> None:
    open_release(visit, forged(published.release, tmp_path / "forged"))
    visit.page.locator("[data-status]").get_by_text("✗ Does not meet its claims").or_(
        visit.page.locator("[data-status]").get_by_text("Forged or damaged: do not use it")
    ).wait_for(timeout=LONG)


FOREIGN = """age;sex;town;illness
20-39;F;130**;flu
20-39;F;130**;cold
20-39;F;130**;flu
40-59;M;148**;gout
40-59;M;148**;flu
"""


def test_a_table_made_elsewhere_is_measured(visit: Visit, tmp_path: Path) -> None:
    table = tmp_path / "arx.csv"
    table.write_text(FOREIGN, encoding="utf-8")
    visit.click("A table made elsewhere")
    field = visit.page.get_by_label("Path of a CSV")
    field.fill(str(table))
    field.press("Enter")
    visit.page.locator("[data-meaning]").wait_for(timeout=LONG)
    for label, names in (
        ("Columns that others may know (quasi-identifiers)", ("age", "sex", "town")),
        ("Secret columns (sensitive)", ("illness",)),
    ):
        visit.page.get_by_label(label).click()
        for at, name in enumerate(names):
            visit.page.get_by_role("option", name=name, exact=True).click()
            visit.undoes(f"{label}: {', '.join(names[: at + 1])}")
        visit.page.keyboard.press("Escape")
        visit.page.locator(".q-menu").wait_for(state="hidden")
    give(visit, "Policy (policy.toml)", "")
    visit.click("Measure")
    visit.page.locator("[data-measured]").wait_for(timeout=LONG)
    wanted = nr.measure(table, quasi=["age", "sex", "town"], sensitive=["illness"])
    assert wanted.value("k-anonymity") == 2
    shown = visit.page.locator("[data-measured] .n-table").inner_text()
    visit.sees("k = 2")
    for one in wanted:
        assert one.statement in shown
    names: dict[str, nr.Measures] = {}
    exec(visit.page.locator("[data-measured] .n-code").inner_text(), names)
    assert names["measures"].frame.equals(wanted.frame)
    visit.page.wait_for_function("document.querySelector('[data-measured]').getBoundingClientRect().top < 120")
    visit.shot("auditor-table")
    assert barriers(visit.page) == []


def test_a_table_made_elsewhere_is_judged_by_a_policy(visit: Visit, tmp_path: Path) -> None:
    policy = tmp_path / "asked.toml"
    policy.write_text(
        "[attributes]\nage = 'quasi-identifier'\nsex = 'quasi-identifier'\ntown = 'quasi-identifier'\n"
        "illness = 'sensitive'\n[[require]]\nmodel = 'k-anonymity'\nk = 3\n"
        "[[require]]\nmodel = 'distinct-l-diversity'\non = 'illness'\nl = 2\n[method]\nname = 'mondrian'\n",
        encoding="utf-8",
    )
    give(visit, "Policy (policy.toml)", policy)
    visit.click("Measure")
    judged = visit.page.locator("[data-judged]")
    judged.wait_for(timeout=LONG)
    rows = judged.locator("tbody tr").all_inner_texts()
    assert ["fails" in row for row in rows] == [True, False]


def test_nothing_left_the_machine_and_nothing_failed(visit: Visit) -> None:
    assert visit.abroad == []
    assert visit.faults == []
