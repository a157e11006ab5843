"""Charts of the library as pictures for a page: in its light or its dark look, as SVG, which an <img> never runs."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noren.estimates import BLUES, INK, PALETTE, RULE, SOFT, rendered
from noren.progress import Stage
from noren_studio.theme import DARK

NIGHT: Mapping[str, str] = {
    INK: DARK["ink"],
    SOFT: DARK["soft"],
    RULE: DARK["rule"],
    "white": DARK["surface"],
    "#8A8A8A": "#8f9aa5",
    **dict(zip(BLUES, ("#22303d", "#274f72", "#2f7ab0", "#6db3e0", "#d3eafa"), strict=True)),
    PALETTE[0]: PALETTE[4],
    PALETTE[4]: "#3d8fd1",
    PALETTE[5]: "#c98f4e",
}
"""What stands for each colour of a chart in the dark look. A heat map then goes from dark to bright, and the letters
on its cells turn with it."""
DATA = ("datasets", "values")
WORDS = ("domain", "sort", "text", "title", "subtitle")
"""Parts of a specification that hold labels, where they are texts or lists of them."""


class Spec:
    """A chart that was drawn before, or another look of one."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    def to_dict(self) -> dict[str, Any]:
        return dict(self.content)


def in_the_dark(part: Any, name: str = "") -> Any:
    """A specification in the dark look. Data and words are left alone: a label may be called like a colour."""
    if isinstance(part, Mapping):
        return {key: item if key in DATA else in_the_dark(item, key) for key, item in part.items()}
    if isinstance(part, list) and name not in WORDS:
        return [in_the_dark(item) for item in part]
    return NIGHT.get(part, part) if isinstance(part, str) and name not in WORDS else part


def picture(chart: Any) -> dict[str, Any]:
    """A chart for a page: its specification, how it looks by day and in the dark, and how large it is."""
    spec = chart.to_dict()
    day, night = (rendered(Spec(one), ".svg") for one in (spec, in_the_dark(spec)))
    head = day[:400].decode("utf-8", "replace")
    width, height = (float(head.partition(f' {side}="')[2].partition('"')[0]) for side in ("width", "height"))
    return {"spec": spec, "light": _source(day), "dark": _source(night), "width": width, "height": height}


def _source(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def export(stage: Stage, spec: str, target: str) -> str:
    """A chart as a file, for a reader: in the light look, as papers are."""
    with stage("Drawing", None):
        content = rendered(Spec(json.loads(Path(spec).read_text(encoding="utf-8"))), Path(target).suffix)
        Path(target).write_bytes(content)
    return target
