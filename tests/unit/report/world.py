"""Three small releases with hostile names, and every kind of report about them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv

from noren.report.page import Page, holder_page, make_report
from noren.workflow.anonymize import run

N = 240
WHEN = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
TAG = "<script>alert(1)</script>"
TOWN = '東京都 "zone"&<i>'
EVIL = f'title = "{TAG} & <b>"\n'


def people() -> pa.Table:
    ills = ["<em>flu</em>", "burn", "gout", "cold", "a very long illness of which nobody has ever heard before " * 2]
    return pa.table(
        {
            "who": [f"p{i:03}" for i in range(N)],
            "age": [20 + i * 7 % 41 for i in range(N)],
            TOWN: [["Ulm", "Bonn", "Köln", "<td>"][i * 5 % 4] for i in range(N)],
            "note": [f"n{i % 9}" for i in range(N)],
            TAG: [ills[(i // 3 + i // 7) % 5] for i in range(N)],
        }
    )


def policy(method: str, models: str) -> str:
    quoted = json.dumps(TOWN, ensure_ascii=False)
    return (
        f'{EVIL}[attributes]\nwho = "identifier"\nage = "quasi-identifier"\n{quoted} = "quasi-identifier"\n'
        f'note = "plain"\n"{TAG}" = "sensitive"\n{models}\n[method]\nname = "{method}"\n'
        + ('prior = "data"\n' if method == "decoys" else "")
    )


DIVERSE = f'[[require]]\nmodel = "frequency-l-diversity"\non = "{TAG}"\nl = 2\n'
CLOSE = f'[[require]]\nmodel = "t-closeness"\non = "{TAG}"\nt = 0.4\n'
ALIKE = '[[require]]\nmodel = "k-anonymity"\nk = 3\n'


class World:
    """A holder's folder with one release."""

    def __init__(self, folder: Path, method: str, models: str) -> None:
        folder.mkdir()
        self.data = folder / "people.csv"
        pv.write_csv(people(), self.data)
        self.policy = folder / "policy.toml"
        self.policy.write_text(policy(method, models), encoding="utf-8")
        self.release = folder / "release"
        self.outcome = run(self.data, self.policy, to=self.release)

    def public(self, attacks: Any = ("homogeneity",)) -> Page:
        return make_report(self.release, date=WHEN, attacks=attacks)

    def holder(self, attacks: Any = ("homogeneity",)) -> Page:
        return make_report(self.release, self.policy, original=self.data, date=WHEN, attacks=attacks)


def make_worlds(folder: Path) -> dict[str, World]:
    asked = {"decoys": CLOSE, "mondrian": ALIKE + DIVERSE, "anatomy": DIVERSE}
    return {method: World(folder / method, method, models) for method, models in asked.items()}


def make_pages(worlds: dict[str, World]) -> dict[str, Page]:
    found = {f"{name} public": world.public() for name, world in worlds.items()}
    found |= {f"{name} holder": world.holder() for name, world in worlds.items() if name != "mondrian"}
    found["mondrian holder"] = worlds["mondrian"].holder(attacks=None)
    found |= {f"{name} run": holder_page(world.outcome, date=WHEN) for name, world in worlds.items()}
    estimate = worlds["anatomy"].outcome.release.estimate(TAG)
    found["anatomy estimate"] = holder_page(worlds["anatomy"].outcome, estimate, policy=worlds["anatomy"].policy)
    return found


NAMES = [f"{name} {kind}" for name in ("decoys", "mondrian", "anatomy") for kind in ("public", "holder", "run")]
NAMES.append("anatomy estimate")


class Node:
    def __init__(self, tag: str, attributes: dict[str, str], parent: Node | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[Node] = []
        self.own: list[str | Node] = []

    def walk(self) -> list[Node]:
        return [self, *(found for child in self.children for found in child.walk())]

    def all(self, *tags: str) -> list[Node]:
        return [node for node in self.walk() if node.tag in tags]

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.own)


class Tree(HTMLParser):
    """The page as a browser's tree; fails where an element is not closed in its place."""

    VOID = ("meta",)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = self.here = Node("", {}, None)
        self.feed(text)
        assert self.here is self.root, f"{self.here.tag} is not closed"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(node)
        self.here.own.append(node)
        if tag not in self.VOID:
            self.here = node

    def handle_endtag(self, tag: str) -> None:
        assert self.here.tag == tag
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        self.here.own.append(data)


def above(node: Node) -> list[Node]:
    return [] if node.parent is None else [node.parent, *above(node.parent)]
