"""Forms made of the fields that models and methods declare: name, range, description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log10
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from nicegui import ui
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from noren_studio import texts
from noren_studio.parts import div, line, take

Kind = Literal["whole", "number", "choice", "switch", "text", "other"]
MOST = {"k": 50, "l": 12, "m": 12, "p": 12, "refinement": 10, "c": 10, "beta": 5, "delta": 5, "epsilon": 10, "d": 10,
        "e": 6, "t": 1, "counterfeits": 1, "block": 50_000, "grid": 500}  # fmt: skip
"""Where a slider ends whose field has no upper bound; larger numbers can be typed."""


@dataclass(frozen=True)
class Range:
    """The permitted values of a field."""

    kind: Kind
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()
    optional: bool = False

    def words(self) -> str:
        """Return the valid range in words."""
        if self.low is None and self.high is None:
            return ""
        low = "" if self.low is None else texts.above(self.low, self.open_low)
        high = "" if self.high is None else texts.below(self.high, self.open_high)
        return " ".join(filter(None, (low, high)))


def range_of(field: FieldInfo) -> Range:
    """Return kind and bounds of a declared field."""
    kind, optional = field.annotation, False
    if get_origin(kind) in (Union, UnionType):
        inner = [one for one in get_args(kind) if one is not NoneType]
        optional = len(inner) < len(get_args(kind))
        kind = inner[0] if len(inner) == 1 else str if str in inner else None
    bounds: dict[str, Any] = {}
    for one in field.metadata:
        for name in ("ge", "gt", "le", "lt"):
            if getattr(one, name, None) is not None:
                bounds[name] = float(getattr(one, name))
    if get_origin(kind) is Literal:
        return Range("choice", choices=tuple(map(str, get_args(kind))), optional=optional)
    if kind is bool:
        return Range("switch", optional=optional)
    if kind is str:
        return Range("text", optional=optional)
    if kind not in (int, float):
        return Range("other", optional=optional)
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    of: Kind = "whole" if kind is int else "number"
    return Range(of, low, high, "gt" in bounds, "lt" in bounds, optional=optional)


def fields_of(kind: type[BaseModel], but: tuple[str, ...]) -> dict[str, FieldInfo]:
    """Return the fields that a form can show."""
    found = {name: field for name, field in kind.model_fields.items() if name not in but}
    return {name: field for name, field in found.items() if range_of(field).kind != "other"}


def slider_span(name: str, found: Range) -> tuple[float, float, float]:
    """Return range and step of a slider."""
    low = found.low if found.low is not None else 0.0
    high = found.high if found.high is not None else float(MOST.get(name, max(10.0, 10 * low)))
    if found.kind == "whole":
        return low, high, 1
    step = 10 ** round(log10(max(high - low, 1e-6) / 100))
    return (low + step if found.open_low else low), (high - step if found.open_high else high), step


def form(
    kind: type[BaseModel], given: Mapping[str, Any], change: Callable[[str, Any], None], but: tuple[str, ...]
) -> None:
    """Show one control per field. `change` gets a field and its new value; None means the default."""
    for name, field in fields_of(kind, but).items():
        found = range_of(field)
        default = None if field.is_required() else field.default
        with div("n-col tight").style("max-width: 520px"):
            _control(name, field, found, given.get(name, default), change)
            line(f"{field.description or ''} {found.words()}".strip(), "n-soft n-small")


def _control(name: str, field: FieldInfo, found: Range, now: Any, change: Callable[[str, Any], None]) -> None:
    if found.kind == "choice":
        ui.select(list(found.choices), value=now, label=name, on_change=lambda e: change(name, e.value)).props(
            "dense outlined options-dense"
        ).style("max-width: 300px")
    elif found.kind == "switch":
        ui.switch(name, value=bool(now), on_change=lambda e: change(name, e.value))
    elif found.kind == "text":
        written = ui.input(name, value=now or "").props("dense outlined spellcheck=false").props(f'data-field="{name}"')
        take(written, lambda value: change(name, value or None))
    else:
        _number(name, field, found, now, change)


def _number(name: str, field: FieldInfo, found: Range, now: Any, change: Callable[[str, Any], None]) -> None:
    """Show a field and a slider for one number. A slider reports its value when it is released."""
    low, high, step = slider_span(name, found)

    def told(value: Any) -> None:
        if value is None or value == "":
            if found.optional or not field.is_required():
                change(name, None)
            return
        number = float(value)
        change(name, int(number) if found.kind == "whole" else round(number, 6))

    with div("n-row").style("flex-wrap: nowrap"):
        typed = ui.number(name, value=now, min=found.low, max=found.high, step=step, format="%g").props(
            "outlined dense"
        )
        typed.style("width: 110px").props(f'data-field="{name}"')
        typed.on("keydown.enter", lambda: told(typed.value)).on("blur", lambda: told(typed.value))
        if now is not None:
            slider = ui.slider(min=low, max=max(high, float(now)), step=step, value=now).classes("n-grow")
            slider.props("label").props(f'aria-label="{name}"').style("min-width: 200px")
            slider.on("change", lambda e: told(e.args))
