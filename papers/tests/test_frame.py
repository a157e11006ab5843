"""The frame of a reproduction: no claim without an answer, no figure without our line, no stand-in in disguise."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import types
from importlib.metadata import entry_points
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from noren.cli.main import ELSEWHERE, GROUP, main
from noren.errors import DataError, NorenError, QueryError
from noren_papers import draw, registry
from noren_papers.base import Bench, Figure, Gain, Paper, Result
from noren_papers.claims import HOLDS, IN_PART, Answer, judged
from noren_papers.datasets import BY_NAME, CHANGED, DATASETS, EXACT, MISSING, STAND_INS, adult_hierarchy, load, survey
from noren_papers.run import check_result, reproduce

OURS = "likelihood (ours)"
FRAME = pl.DataFrame({"l": [2, 5, 2, 5], "series": ["Proposal", "Proposal", OURS, OURS], "L1": [0.4, 0.9, 0.1, 0.0]})


def picture(frame: pl.DataFrame = FRAME) -> object:
    return draw.lines(frame, x="l", y="L1", series="series", title="A figure", ours=(OURS,), log_y=True)


def compute(bench: Bench) -> Result:
    for rows in bench.each([50]):
        bench.table("adult", rows=rows)
    size = bench.pick(1000, 10)
    answers = {"best": judged([True, False], "0.1 against 0.4"), "all": Answer(HOLDS, f"{size} records")}
    gains = Gain.of("L1", {"l = 2": 0.25, "l = 5": 1.5}, "too few records")
    return Result({"": FRAME}, {"": picture()}, answers, (OURS,), {"l": [2, 5]}, ("a note",), gains, "It is quicker.")


FIGURE = Figure("1", "Error | against <l>", {"best": "It is best", "all": "It is complete"}, compute, ("adult",))
SECOND = Figure("table-2", "Another", {"best": "It is best", "all": "It is complete"}, compute)


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Paper:
    module = types.ModuleType("tests_papers_invented")
    invented = Paper("invented", "009", "An invented <paper>", "Nobody, 2026", (FIGURE, SECOND))
    module.PAPER = invented  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(registry.HOMES, "invented", module.__name__)
    return invented


def test_a_run_writes_sheets_pictures_answers_and_summaries(paper: Paper, tmp_path: Path) -> None:
    said: list[str] = []
    done = reproduce("invented", out=tmp_path, quick=True, say=said.append)
    folder = tmp_path / "invented"
    assert done.folder == folder
    names = {path.name for path in folder.iterdir()}
    for figure in ("figure-1", "table-2"):
        assert {f"{figure}.csv", f"{figure}.png", f"{figure}.html", f"{figure}.json"} <= names
    assert (folder / "figure-1.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert pl.read_csv(folder / "figure-1.csv").equals(FRAME)
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert "4 claims of 2 figures and tables were measured: 2 hold, 2 in part." in text
    assert "quick run" in text
    assert "| It is best | **in part** 1 of 2 |" in text
    assert "## Figure 1: Error | against <l>" in text, "titles stand in headings, outside tables"
    record = json.loads((folder / "figure-1.json").read_text(encoding="utf-8"))
    assert record["data"][0]["name"] == "adult (stand-in)"
    assert record["answers"][1]["measured"] == "10 records"
    assert record["cpu_seconds"] >= 0
    assert " s CPU), Noren" in text
    page = (folder / "summary.html").read_text(encoding="utf-8")
    assert "10 records" in page
    assert "An invented &lt;paper&gt;" in page
    assert page.count("data:image/png;base64,") == 2
    assert len(said) == 2
    assert not [name for name in names if name.startswith(".")], "nothing half-written stays behind"


def test_a_chart_page_loads_nothing_from_a_network(paper: Paper, tmp_path: Path) -> None:
    reproduce("invented", ["1"], out=tmp_path, quick=True)
    page = (tmp_path / "invented" / "figure-1.html").read_text(encoding="utf-8")
    assert '<script src="charts.js">' in page
    assert "module" not in page.split("vegaEmbed")[0], "browsers load no module from a file on disk"
    script = (tmp_path / "invented" / "charts.js").read_text(encoding="utf-8")
    assert script.startswith("(function () {")
    assert not [line for line in script.splitlines() if line.startswith(("import ", "export "))]
    assert (tmp_path / "invented" / "charts.js").stat().st_size > 100_000
    assert 'src="http' not in page


def test_a_single_figure_joins_what_is_there(paper: Paper, tmp_path: Path) -> None:
    reproduce("invented", ["figure 1"], out=tmp_path)
    assert "Not run yet: Table 2" in (tmp_path / "invented" / "summary.md").read_text(encoding="utf-8")
    reproduce("invented", ["table-2"], out=tmp_path, quick=True)
    text = (tmp_path / "invented" / "summary.md").read_text(encoding="utf-8")
    assert "Not run yet" not in text
    assert "From quick runs (smaller tables, few repetitions): Table 2." in text
    assert "1000 records" in (tmp_path / "invented" / "figure-1.json").read_text(encoding="utf-8")


def test_a_run_goes_on_where_it_was_interrupted(paper: Paper, tmp_path: Path) -> None:
    def told(**how: object) -> list[str]:
        said: list[str] = []
        reproduce("invented", out=tmp_path / "out", say=said.append, **how)  # type: ignore[arg-type]
        return ["stands" if "stands from an earlier run" in line else "computed" for line in said]

    reproduce("invented", ["1"], out=tmp_path / "out", quick=True)
    assert told(quick=True, resume=True) == ["stands", "computed"]
    assert told(quick=True, resume=True) == ["stands", "stands"]
    assert told(quick=True) == ["computed", "computed"], "only where it is asked for"
    assert told(resume=True) == ["computed", "computed"], "a quick run does not stand for a full one"
    write_set(tmp_path / "data", "adult", b"age\n1\n", False)
    assert told(resume=True, data=tmp_path / "data") == ["computed", "computed"], "a file takes the stand-in's place"
    assert told(resume=True, data=tmp_path / "data") == ["stands", "stands"]
    write_set(tmp_path / "data", "adult", b"age\n2\n", False)
    assert told(resume=True, data=tmp_path / "data") == ["computed", "computed"], "the file is another one"
    record = tmp_path / "out" / "invented" / "figure-1.json"
    record.write_text(record.read_text(encoding="utf-8").replace("It is best", "It was best"), encoding="utf-8")
    assert told(resume=True, data=tmp_path / "data") == ["computed", "stands"], "another claim was answered"


def test_the_page_of_gains_names_every_loss_and_its_reason(paper: Paper, tmp_path: Path) -> None:
    reproduce("invented", ["1"], out=tmp_path, quick=True)
    page = (tmp_path / "gains.md").read_text(encoding="utf-8")
    assert "| [invented figure 1](invented/figure-1.json), quick run | L1 | **0.61** | 1 of 2 | 1.50 (l = 5) |" in page
    assert "| too few records |" in page
    (better,) = Gain.of("L1", {"a": 0.5, "b": 1.0, "c": float("inf")}, "too few records")
    assert (better.better, better.points, better.reason) == (1, 2, "")
    assert Gain.of("L1", {"a": 0.0}) == ()


def test_the_command_prints_every_claim(paper: Paper, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["reproduce", "invented", "1", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for text in ("It is best", "in part", "It is complete", "summary.html"):
        assert text in done.output
    done = CliRunner().invoke(main, ["reproduce", "invented", "--quick", "--out", str(tmp_path), "--json"])
    report = json.loads(done.stdout)
    assert [figure["key"] for figure in report["figures"]] == ["1", "table-2"]
    assert report["figures"][0]["answers"][0]["verdict"] == IN_PART


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "no paper called 'nothing'"),
        (["invented", "7"], "no figure '7'"),
        (["invented", "--data", "nowhere-at-all"], "does not exist"),
        (["all", "1"], "takes no figures"),
    ],
)
def test_what_cannot_be_run_is_refused(paper: Paper, tmp_path: Path, arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(main, ["reproduce", *arguments, "--quick", "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert words in done.output
    assert not (tmp_path / "out").exists(), "a refused run leaves nothing behind"


def test_a_file_in_the_place_of_the_folder_is_refused(paper: Paper, tmp_path: Path) -> None:
    (tmp_path / "invented").write_text("mine")
    with pytest.raises(NorenError, match="not a folder"):
        reproduce("invented", out=tmp_path, quick=True)
    assert (tmp_path / "invented").read_text() == "mine"


@pytest.mark.parametrize("text", ["not json", '{"key": "1"}', "[]"])
def test_a_strange_record_counts_as_not_run(paper: Paper, tmp_path: Path, text: str) -> None:
    (tmp_path / "invented").mkdir()
    (tmp_path / "invented" / "table-2.json").write_text(text)
    reproduce("invented", ["1"], out=tmp_path, quick=True)
    assert "Not run yet: Table 2" in (tmp_path / "invented" / "summary.md").read_text(encoding="utf-8")
    assert (tmp_path / "invented" / "table-2.json").read_text() == text, "what is not ours is left alone"


def changed(**parts: object) -> Result:
    whole = {
        "sheets": {"": FRAME},
        "pictures": {"": None},
        "answers": {"best": Answer(HOLDS, "x"), "all": Answer(HOLDS, "x")},
        "more": "It is better.",
        "ours_series": (OURS,),
    }
    return Result(**(whole | parts))  # type: ignore[arg-type]


def test_a_whole_result_passes(paper: Paper) -> None:
    check_result(paper, FIGURE, changed())


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (changed(answers={"best": Answer(HOLDS, "x")}), "claims and answers differ in all"),
        (changed(sheets={"other": FRAME}), "no sheet"),
        (changed(more=""), "no line of our own"),
        (changed(ours_series=("not drawn (ours)",)), "in none of the sheets"),
    ],
)
def test_a_gap_in_a_result_is_an_error(paper: Paper, result: Result, words: str) -> None:
    with pytest.raises(NorenError, match=words):
        check_result(paper, FIGURE, result)


def test_randomness_repeats_by_name_and_differs_between_names() -> None:
    def drawn(name: str, seed: str = "a") -> list[int]:
        return Bench(None, quick=True, seed=seed).rng(name).integers(0, 1 << 30, 4).tolist()

    assert drawn("x") == drawn("x")
    assert drawn("x") != drawn("y")
    assert drawn("x") != drawn("x", "b")


def test_a_table_is_made_once_and_noted_in_every_figure() -> None:
    shelf: dict[object, object] = {}
    first, second = (Bench(None, quick=True, seed=str(i), shelf=shelf) for i in range(2))
    assert first.table("adult", rows=20) is second.table("adult", rows=20)
    assert [*second.used] == ["adult[:20]"]
    assert second.used["adult[:20]"].origin == "generated"


def write_set(folder: Path, name: str, content: bytes, packed: bool) -> None:
    path = folder / BY_NAME[name].path
    path.parent.mkdir(parents=True, exist_ok=True)
    if packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_read_as_text_and_known_by_its_unpacked_content(tmp_path: Path, packed: bool) -> None:
    content = b"buying,maint\nhigh,01\n,2\n"
    write_set(tmp_path, "car", content, packed)
    frame, used = load("car", tmp_path)
    assert frame.to_dicts() == [{"buying": "high", "maint": "01"}, {"buying": "", "maint": "2"}]
    assert used.sha256 == hashlib.sha256(content).hexdigest()
    assert "not the version" in used.remark
    states = {found.dataset.name: found.state for found in survey(tmp_path)}
    assert states["car"] == CHANGED
    assert states["adult"] == MISSING


def test_the_published_version_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from noren_papers import datasets

    content = b"a\n1\n"
    mine = replace(BY_NAME["car"], sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(datasets, "DATASETS", (mine,))
    write_set(tmp_path, "car", content, True)
    assert [found.state for found in survey(tmp_path)] == [EXACT]


def test_a_torn_gzip_file_is_an_error_not_a_stand_in(tmp_path: Path) -> None:
    write_set(tmp_path, "car", b"", False)
    (tmp_path / "uci" / "car.csv").write_bytes(gzip.compress(b"a\n" * 5000)[:40])
    with pytest.raises(NorenError, match="not a whole gzip file"):
        load("car", tmp_path)


def test_a_hierarchy_is_read_leaf_first(tmp_path: Path) -> None:
    write_set(tmp_path, "adult hierarchy sex", b"Male;*\nFemale;*\n", False)
    rows, used = adult_hierarchy("sex", tmp_path)
    assert rows == [["Male", "*"], ["Female", "*"]]
    assert used.origin == "adult_hierarchies/adult_hierarchy_sex.csv"


@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_has_the_width_of_its_file_and_repeats(name: str) -> None:
    frame, used = load(name, None, rows=400)
    again, _ = load(name, None, rows=400)
    assert frame.equals(again)
    assert frame.height == min(400, BY_NAME[name].rows)
    assert set(frame.dtypes) == {pl.String}
    assert used.origin == "generated"
    assert name in used.name
    if name != "census income":  # only the columns that the experiments read
        assert frame.width == BY_NAME[name].columns


def test_stand_in_hierarchies_hold_every_value() -> None:
    frame, _ = load("adult", None)
    for dataset in DATASETS:
        if dataset.name.startswith("adult hierarchy "):
            column = dataset.name.removeprefix("adult hierarchy ")
            rows, _ = adult_hierarchy(column, None)
            assert set(frame[column].unique()) <= {row[0] for row in rows}
            assert {row[-1] for row in rows} == {"*"}
            assert len({len(row) for row in rows}) == 1


def test_datasets_tells_what_is_missing_and_where_it_is_published(tmp_path: Path) -> None:
    write_set(tmp_path, "car", b"a\n1\n", False)
    done = CliRunner().invoke(main, ["datasets", "--data", str(tmp_path), "--json"])
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert found["car"]["state"] == CHANGED
    assert found["nursery"]["state"] == MISSING
    assert all(one["publisher"].startswith("https://") for one in found.values())
    done = CliRunner().invoke(main, ["datasets", "--data", str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    done = CliRunner().invoke(main, ["datasets"])
    assert done.exit_code == 0
    assert "archive.ics.uci.edu" in done.output


@pytest.mark.parametrize("name", ["reproduce", "datasets"])
def test_both_commands_have_help_with_an_example_and_json(name: str) -> None:
    """Found by the command line through their entry points, which are those of `ELSEWHERE`."""
    text = " ".join(CliRunner().invoke(main, [name, "--help"]).output.split())
    assert f"Example: noren {name} " in text
    assert "--json" in text
    added = {point.name for point in entry_points(group=GROUP) if point.module.startswith("noren_papers")}
    assert added == {command for command, (home, _) in ELSEWHERE.items() if home == "noren-papers"}


def test_a_missing_folder_is_not_taken_for_an_empty_one(paper: Paper, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        reproduce("invented", out=tmp_path, data=tmp_path / "nowhere", quick=True)


@pytest.mark.parametrize("kind", ["lines", "bars", "tiles"])
def test_a_chart_draws_gaps_dots_and_panels(kind: str) -> None:
    import vl_convert as vlc

    frame = pl.DataFrame(
        {"t.x": [0.1, 0.5] * 4, "s[1]": ["a", "a", OURS, OURS] * 2, "y:z": [0.0, 1e-4, None, 2.0] * 2,
         "part": ["q' = 1"] * 4 + ["q' = 2"] * 4}
    )  # fmt: skip
    if kind == "tiles":
        chart = draw.tiles(frame, x="t.x", y="s[1]", value="y:z", panel="part", title="T", log=True)
    else:
        chart = getattr(draw, kind)(
            frame, x="t.x", y="y:z", series="s[1]", panel="part", title="T", ours=(OURS,), log_y=True
        )
    svg = vlc.vegalite_to_svg(chart.to_json())
    assert "q&apos; = 1" in svg or "q' = 1" in svg or "q&#39; = 1" in svg
    (drawn,) = chart.to_dict()["datasets"].values()
    assert [row["y:z"] for row in drawn] == [1e-4, 2.0] * 2, "zero has no place on a log scale, and a gap stays a gap"
    marks = {"lines": "point", "bars": "point", "tiles": "rect mark"}[kind]
    assert svg.count(f'aria-roledescription="{marks}"') == 4, "every point is drawn, whatever its columns are called"


@pytest.mark.parametrize("kind", ["lines", "bars"])
@pytest.mark.parametrize("log", [False, True])
def test_means_carry_two_standard_errors_each_way(kind: str, log: bool) -> None:
    import vl_convert as vlc

    frame = pl.DataFrame({"l": [2, 5], "series": [OURS, OURS], "y": [1.0, 2.0], "se": [0.25, None]})
    chart = getattr(draw, kind)(frame, x="l", y="y", series="series", title="T", ours=(OURS,), log_y=log, error="se")
    (drawn,) = chart.to_dict()["datasets"].values()
    low, high = (drawn[0][name] for name in (draw.LOW, draw.HIGH))
    assert (low, high) == (pytest.approx((0.6065, 1.6487), abs=1e-4) if log else (0.5, 1.5))
    assert drawn[1][draw.LOW] == drawn[1][draw.HIGH] == 2.0
    svg = vlc.vegalite_to_svg(chart.to_json())
    assert svg.count('aria-roledescription="rule mark"') == 2
    assert "diversity l" in svg, "a letter alone can be taken for a stroke"
    assert "2.5" not in svg, "whole numbers stay whole"


def test_a_panel_has_no_ticks_of_another() -> None:
    import vl_convert as vlc

    def ticks(places: dict[str, list[float]]) -> list[float] | None:
        rows = [{"x": x, "y": 1.0, "series": "a", "part": part} for part, xs in places.items() for x in xs]
        chart = draw.lines(pl.DataFrame(rows), x="x", y="y", series="series", panel="part", title="T")
        assert vlc.vegalite_to_svg(chart.to_json())
        found: list[float] | None = chart.to_dict()["spec"]["layer"][0]["encoding"]["x"]["axis"].get("values")
        return found

    assert ticks({"l": [2, 5, 10], "k": [2, 5, 10]}) == [2, 5, 10]
    assert ticks({"c": [0.25, 1, 4], "l": [8, 30, 120]}) == [0.25, 1, 4, 8, 30, 120], "ranges apart"
    assert ticks({"c": [0.25, 1, 4], "k": [2, 3, 5]}) is None, "4 lies between 3 and 5, and 2 and 3 below 4"


def test_unknown_papers_are_refused_by_name() -> None:
    with pytest.raises(QueryError, match="no paper called"):
        registry.find_paper("006")


def test_a_packed_picture_has_the_same_pixels() -> None:
    import struct
    import zlib

    from noren_papers.write import packed

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    pixels = b"\0" + bytes(range(3)) * 400
    stored = zlib.compress(pixels, 0)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 400, 1, 8, 2, 0, 0, 0))
    png = (
        b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", stored[:50]) + chunk(b"IDAT", stored[50:]) + chunk(b"IEND", b"")
    )
    small = packed(png)
    assert len(small) < len(png) / 5
    assert small.startswith(png[: 8 + len(header)])
    assert small.endswith(chunk(b"IEND", b""))
    data = small[8 + len(header) + 8 : -12 - 4]
    assert zlib.decompress(data) == pixels
