"""Answers to a recipient's questions: a public method of a release as figures, a chart and a file."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.errors import NorenError, QueryError
from noren.estimates import BLUES, INK, PALETTE, RULE, SOFT, rendered
from noren.progress import Stage
from noren.results import plain
from noren_studio.texts import recipient as texts
from noren_studio.theme import DARK

if TYPE_CHECKING:
    from noren import Release


SHOWN = 5_000
"""Most rows of an answer that a page shows; the file has all."""
DRAWN = 4_000
"""Most cells of an answer that are drawn as a picture."""


def answer(stage: Stage, place: str, call: Mapping[str, Any], chart: str, folder: str, mark: str) -> dict[str, Any]:
    """Answer a question, and write the table (CSV) and the specification of the chart into the session's folder."""
    from noren import open_release
    from noren.cli import guarded_frame

    with stage("Opening the release", None):
        release = open_release(place)
    with stage("Estimating", None):
        found = _asked(release, call)
    base = Path(folder) / "answers"
    base.mkdir(mode=0o700, exist_ok=True)
    with stage("Drawing", None):
        csv = base / f"{mark}.csv"
        csv.write_bytes(guarded_frame(found.frame).write_csv().encode())
        drawn = _drawn(found, chart, base / f"{mark}.json")
    return {"mark": mark, "verb": call["verb"], "csv": str(csv), **_told(found, call["verb"]), **drawn}


def _asked(release: Release, call: Mapping[str, Any]) -> Any:
    """Call the method and return its result; a margin, which is a plain frame, gets the fields of other results."""
    if call["verb"] != "margins":
        return getattr(release, call["verb"])(*call["args"], **call["options"])
    from types import SimpleNamespace

    at = call["args"][0]
    if at >= len(release.margins):
        raise QueryError(texts.NO_MARGINS, hint=texts.NO_MARGINS_HINT)
    said = texts.margin_said(release.manifest.margins[at].epsilon)
    return SimpleNamespace(frame=release.margins[at], records=release.records, notes=[said])


def _drawn(found: Any, kind: str, spec: Path) -> dict[str, Any]:
    """Draw an answer, or return the reason why there is no picture."""
    from noren_studio.work.answering import picture

    if not hasattr(found, "plot"):
        return {"picture": None, "no_picture": ""}
    try:
        if len(found.frame) > DRAWN:
            raise QueryError(f"{len(found.frame):,} cells are too many for a picture.")
        made = picture(found.plot(kind) if hasattr(found, "estimator") and hasattr(found, "order") else found.plot())
    except NorenError as error:
        return {"picture": None, "no_picture": error.message}
    spec.write_text(json.dumps(made.pop("spec")), encoding="utf-8")
    return {"picture": {**made, "spec": str(spec)}, "no_picture": ""}


def _told(found: Any, verb: str) -> dict[str, Any]:
    """Return the table of an answer, its notes and its assumption."""
    frame = found.frame
    by = list(getattr(found, "by", ()))
    told: dict[str, Any] = {
        "by": by,
        "heads": list(frame.columns),
        "rows": [plain(list(row)) for row in frame.head(SHOWN).iter_rows()],
        "total": frame.height,
        "numbers": [at for at, kind in enumerate(frame.dtypes) if kind.is_numeric()],
        "records": getattr(found, "records", frame.height),
        "notes": [*([f"Assumes {found.assumes}."] if hasattr(found, "assumes") else []), *_remarks(found)],
        "bars": getattr(found, "error_bars", ""),
        "how": str(getattr(found, "estimator", "") or ""),
        "words": str(found) if verb in ("count", "test", "impute") else "",
    }
    if verb == "estimate":
        told["order"] = {name: list(labels) for name, labels in found.order.items()}
    return told


def _remarks(found: Any) -> Sequence[str]:
    effect = getattr(found, "design_effect", None) or (getattr(found, "diagnostics", None) or {}).get("design_effect")
    weighed = [texts.design_effect(effect)] if effect is not None else []
    return [*getattr(found, "notes", ()), *weighed]


# ---------------------------------------------------------------------- charts as pictures


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
"""The dark theme's colour for each colour of a chart. Heat maps then go from dark to bright, and the text on their
cells changes accordingly."""
DATA = ("datasets", "values")
WORDS = ("domain", "sort", "text", "title", "subtitle")
"""Keys of a specification whose texts, or lists of texts, are labels and keep their wording."""


class Spec:
    """A chart given by its specification."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    def to_dict(self) -> dict[str, Any]:
        return dict(self.content)


def in_the_dark(part: Any, name: str = "") -> Any:
    """Return the specification with the colours of the dark theme. Data and labels are unchanged, because a label may
    equal the name of a colour."""
    if isinstance(part, Mapping):
        return {key: item if key in DATA else in_the_dark(item, key) for key, item in part.items()}
    if isinstance(part, list) and name not in WORDS:
        return [in_the_dark(item) for item in part]
    return NIGHT.get(part, part) if isinstance(part, str) and name not in WORDS else part


def picture(chart: Any) -> dict[str, Any]:
    """Render a chart for a page: specification, pictures in the light and the dark theme, width and height."""
    spec = chart.to_dict()
    day, night = (rendered(Spec(one), ".svg") for one in (spec, in_the_dark(spec)))
    head = day[:400].decode("utf-8", "replace")
    width, height = (float(head.partition(f' {side}="')[2].partition('"')[0]) for side in ("width", "height"))
    return {"spec": spec, "light": _source(day), "dark": _source(night), "width": width, "height": height}


def _source(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def export(stage: Stage, spec: str, target: str) -> str:
    """Write a chart to a file, always in the light theme; return the path."""
    with stage("Drawing", None):
        content = rendered(Spec(json.loads(Path(spec).read_text(encoding="utf-8"))), Path(target).suffix)
        Path(target).write_bytes(content)
    return target
