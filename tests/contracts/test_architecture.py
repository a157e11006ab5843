"""The house stands as drawn: imports point one way, and nobody pays for a room they do not enter."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import noren
from noren.methods import METHODS
from noren.models import MODELS
from noren.schema.roles import Role

SOURCE = Path(noren.__file__).parent
ORDER = (
    "lazy", "kernel", "errors", "files", "ragged", "ahead", "progress", "results", "secret", "schema", "statements",
    "sources", "designs", "estimates", "models", "release", "engines", "metrics", "methods", "policy",
    "workflow", "audit", "report", "cli",
)  # fmt: skip
HEAVY = ("numba", "polars", "pyarrow", "altair", "scipy", "pydantic", "jinja2")


def room_of(path: Path, root: Path = SOURCE) -> str:
    return path.relative_to(root).parts[0].removesuffix(".py")


def home_of(name: str) -> str:
    """The module that `from noren import name` leads to: a public name lives in a room, other names are rooms."""
    home = homes_of(noren).get(name, "noren")
    return f"noren.{name}" if home == "noren" else home


@cache
def homes_of(package: ModuleType) -> dict[str, str]:
    """Where every public name of a package lives, as its stub says."""
    stub = ast.parse(Path(f"{package.__file__}i").read_text(encoding="utf-8"))
    return {
        name.name: str(node.module) for node in stub.body if isinstance(node, ast.ImportFrom) for name in node.names
    }


def imported_rooms(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every room that a module imports from, at its top or inside a function, with the line; "" is noren itself."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the order"
            package = node.module or ""
            inside = [home_of(alias.name) for alias in node.names if alias.name != "__version__"]
            names = (inside or ["noren"]) if package == "noren" else [package]
        for name in names:
            parts = name.split(".")
            if parts[0] == "noren":
                yield node.lineno, parts[1] if len(parts) > 1 else ""


def trespasses(room: str, tree: ast.AST) -> list[str]:
    """Imports that this room may not make."""
    found = []
    for line, other in imported_rooms(tree):
        if other in ("", room):
            continue
        if ORDER.index(other) >= ORDER.index(room):
            found.append(f"line {line}: {room} imports {other}")
    return found


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def test_imports_point_one_way() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}, {trespass}"
        for path in modules()
        for trespass in trespasses(room_of(path), ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert wrong == []


def test_the_library_does_not_know_the_distributions_on_top_of_it() -> None:
    """Papers and studio depend on this one; the command line finds them through entry points."""
    wrong = [
        f"{path.relative_to(SOURCE)}, line {node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom) and re.search(r"\bnoren_\w", ast.unparse(node))
    ]
    assert wrong == []


def test_every_room_has_its_place_in_the_order() -> None:
    assert {room_of(path) for path in modules()} - set(ORDER) == set()


@pytest.mark.parametrize(
    ("room", "code"),
    [
        ("schema", "from noren.policy.policy import Policy"),
        ("release", "def later():\n    import noren.methods.decoys"),
        ("statements", "from noren import engines"),
        ("kernel", "from noren.errors import NorenError"),
        ("schema", "from noren.statements import kernels"),
        ("models", "import noren.workflow"),
        ("models", "from noren import anonymize"),
    ],
)
def test_the_walk_sees_a_wrong_import(room: str, code: str) -> None:
    assert len(trespasses(room, ast.parse(code))) == 1


@pytest.mark.parametrize(
    ("room", "code"),
    [
        ("statements", "def later():\n    from noren.statements import kernels"),
        ("policy", "from noren.schema.roles import Role\nimport numpy"),
        ("workflow", "from noren import __version__"),
        ("cli", "from noren.cli.render import table"),
        ("cli", "from noren import Release"),
    ],
)
def test_the_walk_lets_a_right_import_pass(room: str, code: str) -> None:
    assert trespasses(room, ast.parse(code)) == []


def loaded_after(code: str, *arguments: str) -> set[str]:
    """Top-level packages and modules of noren that a fresh interpreter has loaded after running the code."""
    report = "\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code + report, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_after("import noren")
    assert "noren" in loaded
    assert loaded.isdisjoint({*HEAVY, "numpy", "click", "cryptography"})


def test_help_loads_no_table_library() -> None:
    code = "import sys; from noren.cli.main import main; main(['--help'], standalone_mode=False)"
    loaded = loaded_after(code)
    assert "noren.cli.main" in loaded
    assert loaded.isdisjoint({*HEAVY, "noren_papers", "noren_studio"})


def test_a_recipient_loads_neither_methods_nor_cryptography_nor_the_chart_maker(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("job,town\n" + "".join(f"{'abcd'[i % 4]},{'xy'[i // 20]}\n" for i in range(40)))
    policy = noren.Policy(
        attributes={"job": noren.sensitive(), "town": noren.quasi_identifier()},
        require=[noren.models.FrequencyLDiversity(on="job", l=2)],
    )
    noren.anonymize(table, policy, to=tmp_path / "release")
    code = (
        "import sys, noren\n"
        "release = noren.open_release(sys.argv[1])\n"
        "assert abs(release.estimate(['town', 'job']).frame['count'].sum() - 40) < 1e-6\n"
        "assert release.count({'town': 'x'}).count == 20\n"
    )
    loaded = loaded_after(code, str(tmp_path / "release"))
    assert "noren.estimates.counts.fit" in loaded
    unwanted = {"cryptography", "vl_convert", "altair"}
    assert {name for name in loaded if name.split(".")[0] in unwanted} == set()
    rooms = {name.split(".")[1] for name in loaded if name.startswith("noren.")}
    assert rooms.isdisjoint({"methods", "policy", "workflow", "cli"})


ROOMS = ("cli", "estimates", "metrics", "policy", "release", "report", "schema", "sources", "workflow")
PACKAGES = [noren, *(importlib.import_module(f"noren.{room}") for room in ROOMS)]
"""Packages whose names are loaded when first used."""


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_public_names_are_those_of_the_stub_and_all_resolve(package: ModuleType) -> None:
    homes = homes_of(package)
    assert package.__all__ == sorted(homes)
    assert dir(package) == package.__all__
    for name, home in homes.items():
        if home == package.__name__:
            assert getattr(package, name) is sys.modules[f"{home}.{name}"]
            continue
        assert getattr(package, name) is getattr(sys.modules[home], name)
        assert f"{package.__name__}.{name}" not in sys.modules, "a module of this name would hide it"
    with pytest.raises(AttributeError, match="no attribute 'Polcy'"):
        package.Polcy  # noqa: B018


def test_the_top_has_few_names_and_the_rooms_have_the_rest() -> None:
    constructors = {role.name.lower() for role in Role}
    rooms = {name for name, home in homes_of(noren).items() if home == "noren"}
    assert constructors <= homes_of(noren).keys()
    assert len(homes_of(noren).keys() - constructors - rooms) <= 26
    for name, model in MODELS.items():
        assert getattr(noren.models, model.__name__) is model, name
    for name, method in METHODS.items():
        assert getattr(noren.methods, method.__name__) is method, name


VERBS = (
    "anonymize", "attack", "compare", "measure", "make_report", "open_release", "verify", "Release.estimate",
    "Release.count", "Release.mean", "Release.regress", "Release.test", "Collector.release", "Policy.load",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_what_a_verb_returns_can_be_imported_from_the_top_or_a_room(verb: str) -> None:
    found: Any = noren
    for part in verb.split("."):
        found = getattr(found, part)
    returned = inspect.signature(found).return_annotation
    rooms = [name for name, home in homes_of(noren).items() if home == "noren"]
    public = {*homes_of(noren), *(name for room in rooms for name in vars_of(room))}
    assert set(re.findall(r"[A-Z]\w+", returned)) <= public, returned


def vars_of(room: str) -> list[str]:
    return list(getattr(getattr(noren, room), "__all__", ())) or dir(getattr(noren, room))
