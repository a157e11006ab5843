"""What of NiceGUI's inside the studio stands on: `noren_studio.rebuild` alone, and there nothing that is not listed."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from nicegui import Client, ui
from nicegui.elements.mixins import value_element
from nicegui.event_listener import EventListener
from nicegui.functions import refreshable
from nicegui.outbox import Outbox
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
STUDIO = ROOT / "src" / "noren_studio"
OWN = ("_noren_key", "_exit")
"""A mark of ours on an element, and the end of a process: neither is NiceGUI's."""
PRIVATE = {
    "_event_listeners", "_props", "_text", "_client_value", "_change_handlers", "_NO_CLIENT_VALUE",
}  # fmt: skip
"""Names with an underscore that the module may use."""


def private_names(path: Path) -> Iterator[str]:
    """Names with an underscore of something else than self, and such imports of NiceGUI."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nicegui"):
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))


@pytest.mark.parametrize("path", sorted(STUDIO.rglob("*.py")), ids=lambda path: str(path.relative_to(STUDIO)))
def test_one_module_alone_uses_private_names(path: Path) -> None:
    allowed = PRIVATE if path.name == "rebuild.py" else set()
    assert set(private_names(path)) - {*OWN} <= allowed


def test_the_installed_version_has_what_is_used_and_is_one_that_may_be() -> None:
    """Elements, listeners, values and the outbox as `noren_studio.rebuild` takes them from an old page to a new one."""
    client = Client(lambda: None)  # type: ignore[arg-type]
    with client:
        field = ui.input("name", on_change=print).on("blur", print)
        label = ui.label("word")
    try:
        assert field.props is field._props
        assert label._text == "word"
        assert field._client_value is value_element._NO_CLIENT_VALUE or field._client_value == ""
        assert field._change_handlers
        assert field.VALUE_PROP in field._props
        assert field.LOOPBACK in (True, False, None)
        (key, listener), *_ = field._event_listeners.items()
        assert (key, listener.element_id) == (listener.id, field.id)
        assert {"type", "js_handler"} <= EventListener.__dataclass_fields__.keys()
        assert client.elements[field.id] is field
        assert isinstance(client.outbox, Outbox)
        client.outbox.enqueue_update(field)
        assert field.id in client.outbox.updates
        assert callable(client.handle_event)
        assert issubclass(refreshable.RefreshableContainer, ui.element)
    finally:
        client.delete()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (wanted,) = (one for one in map(Requirement, project["dependencies"]) if one.name == "nicegui")
    assert version("nicegui") in wanted.specifier
    assert "<" in str(wanted.specifier), "a version that nobody has tried must not be installed"
