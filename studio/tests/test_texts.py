"""English stands in `noren_studio.texts` alone: whoever translates the studio translates that folder and is done."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import noren
from noren.policy.proposal import propose, study
from noren.sources import open_source
from noren_studio import texts

STUDIO = Path(__file__).parents[1] / "src" / "noren_studio"
TEXTS = STUDIO / "texts"
HOLDER = ("choose", "columns", "frame", "release", "requirements", "table")
OTHERS = [path for path in STUDIO.rglob("*.py") if TEXTS not in path.parents and path.name != "command.py"]
"""The command speaks as every command of Noren does."""
SHOWN: dict[str, tuple[int | str, ...]] = {
    "text": (0,), "line": (0,), "title": (0,), "tag": (0,), "card": (0, 1, "heading", "why"), "figure": (0, 1, "says"),
    "note": (0, 1, "hint"), "button": (0, "label"), "table": (0, 1), "meter": (1,), "bars": ("described",),
    "verdicts": (0,), "edit": (1,), "ask": (1,), "open_release": (1,), "NorenError": (0, "hint"), "Failure": (0, 1),
    "ui.label": (0,), "ui.button": (0,), "ui.link": (0, "text"), "ui.notify": (0,), "ui.tooltip": (0,),
    "ui.menu_item": (0,), "ui.item": (0,), "ui.input": (0, "label", "placeholder", "value"),
    "ui.number": (0, "label", "placeholder"), "ui.select": (0, "label"), "ui.radio": (0,), "ui.toggle": (0,),
    "ui.checkbox": (0,), "ui.switch": (0,), "ui.expansion": (0,), "ui.upload": ("label",), "ui.page_title": (0,),
}  # fmt: skip
"""What is shown of what is given to the functions that pages are put together from: its place or its name."""
ALLOWED = {"parquet", "csv", "k=3,5,10"}
"""What a policy or a command line would hold as well: names of the library, not words."""
PASSED_ON = ("visible", "str", "join", "list", "tuple", "sorted")
"""Functions whose result is what they were given, for whoever reads it."""
WORD = re.compile(r"[^\W\d_]{2}")
LABEL = re.compile(r'(?<!:)aria-label="?([^"{]*)')


def name_of(call: ast.Call) -> str:
    """How a function is called: by its name, or as one of `ui`."""
    made = call.func
    if isinstance(made, ast.Name):
        return made.id
    if isinstance(made, ast.Attribute) and isinstance(made.value, ast.Name) and made.value.id == "ui":
        return f"ui.{made.attr}"
    return ""


def shown(call: ast.Call) -> list[ast.expr]:
    """The arguments that somebody reads."""
    places = SHOWN.get(name_of(call), ())
    named = [one.value for one in call.keywords if one.arg in places]
    return [*(one for at, one in enumerate(call.args) if at in places), *named]


def literals(part: ast.AST) -> Iterator[str]:
    """Texts that are written out in an expression; keys and formats are not read by anybody."""
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        yield part.value
    elif isinstance(part, ast.FormattedValue | ast.Subscript):
        yield from literals(part.value)
    elif isinstance(part, ast.Dict):
        for one in part.values:
            yield from literals(one)
    elif isinstance(part, ast.Call):
        named = part.func.attr if isinstance(part.func, ast.Attribute) else name_of(part)
        for one in part.args if named in PASSED_ON else ():
            yield from literals(one)
    elif not isinstance(part, ast.Compare | ast.Lambda):
        for one in ast.iter_child_nodes(part):
            yield from literals(one)


def own_words(source: str) -> list[str]:
    """Words that a module shows without having them from the texts."""
    found: list[str] = []
    for part in ast.walk(ast.parse(source)):
        if isinstance(part, ast.Call):
            found += [one for argument in shown(part) for one in literals(argument)]
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and "aria-label" in part.value:
            found += LABEL.findall(part.value)
        if isinstance(part, ast.Assign) and isinstance(target := part.targets[0], ast.Subscript):
            named = isinstance(target.slice, ast.Constant) and target.slice.value in ("aria-label", "alt", "title")
            found += literals(part.value) if named else ()
    return [one for one in found if WORD.search(one) and one not in ALLOWED]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(STUDIO)))
def test_pages_hold_no_words_of_their_own(path: Path) -> None:
    assert own_words(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "button('Cancel', stop)",
        "ui.input(texts.PLACE, placeholder='a path')",
        "line(f'{count} rows', 'n-soft')",
        "note(texts.STALE if old else 'Fresh')",
        "ui.notify(visible(f'Undone: {words}'))",
        "bar._props['aria-label'] = f'Share of {name}'",
        "box.props('aria-label=\"Close it\"')",
        "ui.select({one: f'{one} people' for one in found}, value=1)",
        "raise NorenError(texts.A, hint='Try again.')",
    ],
)
def test_words_of_their_own_would_be_noticed(source: str) -> None:
    assert len(own_words(source)) == 1


def public_names(path: Path) -> list[str]:
    """What a file of texts defines."""
    found: list[str] = []
    for part in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(part, ast.FunctionDef):
            found.append(part.name)
        targets = getattr(part, "targets", [part.target] if isinstance(part, ast.AnnAssign) else [])
        for target in targets:
            found += [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]
    return [name for name in found if not name.startswith("_")]


def test_no_text_hides_another_of_its_name() -> None:
    names = Counter(name for one in HOLDER for name in public_names(TEXTS / f"{one}.py"))
    assert [name for name, times in names.items() if times > 1] == []
    assert {path.stem for path in TEXTS.glob("*.py")} == {*HOLDER, "recipient", "auditor", "__init__"}


def test_no_text_is_left_that_nobody_reads() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in OTHERS]
    used = {part.attr for tree in trees for part in ast.walk(tree) if isinstance(part, ast.Attribute)}
    trees.append(ast.parse((STUDIO / "command.py").read_text(encoding="utf-8")))
    used |= {part.name for tree in trees for part in ast.walk(tree) if isinstance(part, ast.alias)}
    names = {name for path in TEXTS.glob("*.py") if path.stem != "__init__" for name in public_names(path)}
    assert names - used - {"Tone"} == set()


def library_hints() -> list[str]:
    """Every hint that is written out in the library."""
    sources = sorted(Path(noren.__file__).parent.rglob("*.py"))
    parts = [part for path in sources for part in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    given = [one.value for part in parts if isinstance(part, ast.Call) for one in part.keywords if one.arg == "hint"]
    given += [
        part.value
        for part in parts
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and part.targets[0].id == "hint"
    ]
    return [one for part in given for one in literals(part)]


def test_no_hint_in_a_window_is_a_command_line() -> None:
    hints = library_hints()
    typed = [one for one in hints if re.search(r"`noren |--[a-z]", one)]
    assert len(typed) > 10
    shown = [texts.in_words(one) for one in hints]
    assert [one for one in shown if re.search(r"`noren |--[a-z]", one)] == []
    assert "on the page Requirements" in texts.in_words('Add [[require]] with on = "x", or give it the role plain.')
    assert "tick the box to make a new key" in texts.in_words("Make one with `noren key new`, or correct the path.")
    assert texts.in_words("Check the path.") == "Check the path."


def test_a_remark_of_a_draft_does_not_speak_of_the_lines_of_its_file() -> None:
    """Names repeat, with a key (visits of patients) and without one."""
    for keyed in (True, False):
        number = [at // 3 if keyed else at for at in range(120)]
        rows = {"patient_id": number, "name": [f"n{at // 2}" for at in range(120)], "age": list(range(120))}
        why = propose(study(open_source(pa.table(rows)))).why_people
        assert re.search("line by|Add most_rows", why)
        assert not re.search("line by|Add most_rows", texts.without_lines(why))
        assert texts.without_lines(why).endswith((".", "rows"))
