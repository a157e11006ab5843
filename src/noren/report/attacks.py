"""The attacks in the report: an overview, then each attack with its adversary and every figure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from noren.audit import AttackResult
from noren.report.material import Material
from noren.report.render import MOST, Bar, Figure, Group, Kind, Part, Table, bars, counted, number, percent, worst

Result = Mapping[str, Any]
MOST_GROUPS = 8
"""Groups of bars up to which every share of every target is drawn; beyond, one share per target."""
FEW = 3
"""Targets of an attack on the page of a wide table."""
LONG = 240
"""Letters of a note on the page of a wide table."""
FULL = 4
"""Targets up to which every table of an attack is listed; beyond, only what the release itself gives."""
WORDS = "Bars for every figure and table; the table below has the same figures."


def each_attack(run: Sequence[Result], wide: bool = False) -> list[Part]:
    """Render every attack with its adversary and all its figures; of a wide table only the worst."""
    kinds: dict[str, list[Result]] = {}
    for result in run:
        kinds.setdefault(result["attack"], []).append(result)
    return [_attack(name, results, f"attack{place}", wide) for place, (name, results) in enumerate(kinds.items(), 1)]


def about(result: Result) -> str:
    """Return the target of an attack, in words."""
    names = result["target"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def overview(run: Sequence[Result]) -> Part | None:
    """Render one figure of every attack, if there are several: before, in the raw table if known, in this release."""
    if len(run) < 2:
        return None
    rest, run = counted(run), worst(run, _gain)
    groups, rows = [], []
    raw = any(s["name"] == "raw" for result in run for s in shown_scenarios(result))
    for result in run:
        name = headline(result)
        if name is None:
            continue
        shown = shown_scenarios(result)
        before, last = result["baseline"].get(name), final(result)
        after = last["summary"].get(name)
        first = next((s["summary"].get(name) for s in shown if s["name"] == "raw"), None)
        told: list[tuple[str, Any, Kind]] = [
            (result["before"], before, "hollow"),
            ("raw table", first, "striped"),
            (last["title"], after, "solid"),
        ]
        drawn = [Bar(label, value, percent(value), kind) for label, value, kind in told if value is not None]
        title = str(result["titles"].get(name, name.replace("_", " ")))
        groups.append(Group(f"{result['attack']} on {about(result)}: {title}", drawn))
        row = [result["attack"], about(result), title, percent(before)]
        rows.append([*row, *([percent(first)] if raw else []), percent(after), last["title"]])
    holder = any(s["holder_only"] for result in run for s in shown_scenarios(result))
    chart = bars("overview", "All attacks at a glance", WORDS, groups, axis="share or probability")
    header = ("Attack", "On", "Figure", "Before", *(("Raw table",) if raw else ()), "After", "After means")
    caption = "One figure of every attack: before (hollow)"
    caption += ", in the raw table (striped) and after (solid)." if raw else " and after (solid)."
    table = Table("Attacks, before and after", header, rows, range(3, len(header) - 1), holder)
    return Part(Figure(chart, caption, holder), table, notes=[rest] if rest else [])


def _gain(result: Result) -> float:
    """Return by how much the main figure of an attack rises."""
    name = headline(result)
    return 0.0 if name is None else (final(result)["summary"][name] or 0.0) - (result["baseline"].get(name) or 0.0)


def _attack(name: str, results: Sequence[Result], place: str, wide: bool) -> Part:
    """Render one attack on all its targets, or on the worst of many."""
    most = FEW if wide else MOST
    rest, results = counted(results, most), worst(results, _gain, most)
    brief = wide or len(results) > FULL
    shown = [scenario for result in results for scenario in shown_scenarios(result)]
    holder = any(scenario["holder_only"] for scenario in shown)
    several = len(results) > 1
    known = dict.fromkeys(f"The adversary {result['adversary']}." for result in results)
    measured = dict.fromkeys(f"Measured: {result['success']}." for result in results)
    figure = None
    if not wide and (groups := _groups(results)):
        drawn = bars(place, f"What the {name} attack gains", WORDS, groups, axis="share or probability")
        striped = any(bar.kind == "striped" for group in groups for bar in group.bars)
        other = ", in other tables (striped)" if striped else ""
        figure = Figure(drawn, f"Before (hollow){other} and with this release (solid).", holder)
    figures = list(dict.fromkeys(n for r in results for n in r["titles"] if any(n in s["summary"] for s in shown)))
    titles = {n: str(r["titles"][n]) for r in results for n in figures if n in r["titles"]}
    people = "People" if all(scenario["by"] == "person" for scenario in shown) else "Rows"
    header = (*(("On",) if several else ()), "Table", people, *(titles[n] for n in figures))
    shares = {n for n in figures if any(is_share(result, n) for result in results)}
    rows = [row for result in results for row in _rows(result, figures, shares, several, brief)]
    numbers = range(2 if several else 1, len(header))
    notes = [note for result in results for note in (result["notes"][:1] if brief else result["notes"])]
    if wide:
        notes = [_shortened(note) for note in notes[:1]]
    targets = "; ".join(dict.fromkeys(map(about, results))) + (" and others" if rest else "")
    return Part(
        figure,
        Table(f"The {name} attack, before and after", header, rows, numbers, holder),
        title=f"The {name} attack on {targets}",
        words=[*known, *measured],
        notes=[*([rest] if rest else []), *list(dict.fromkeys(_sentence(note) for note in notes))[:most]],
    )


def _lines(scenario: Mapping[str, Any]) -> str:
    """Describe how many lines were measured, and of how many in a sample."""
    of = f" of {scenario['of']:,}" if "of" in scenario else ""
    return f"{scenario['lines']:,}{of}"


def _shortened(note: str) -> str:
    return note if len(note) <= LONG else f"{note[:LONG].rsplit(' ', 1)[0]} ..."


def _sentence(note: str) -> str:
    text = note[:1].upper() + note[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _rows(
    result: Result, figures: Sequence[str], shares: Collection[str], several: bool, brief: bool
) -> list[list[str]]:
    """Return the rows before the release and for every table; in brief only for the release."""
    head = [about(result)] if several else []
    out = [[*head, result["before"], "-", *(_figure(n in shares, result["baseline"].get(n)) for n in figures)]]
    for scenario in [final(result)] if brief else shown_scenarios(result):
        told = [_figure(n in shares, scenario["summary"].get(n), scenario["bounds"].get(n)) for n in figures]
        out.append([*head, scenario["title"], _lines(scenario), *told])
    return out


def _figure(share: bool, value: Any, bounds: Any = None) -> str:
    tell = percent if share else number
    text = tell(value)
    if bounds is None or value is None or any(bound is None for bound in bounds):
        return text
    return f"{text} ({tell(bounds[0])} to {tell(bounds[1])})"


def _groups(results: Sequence[Result]) -> list[Group]:
    """Return bars for every share of every target, or for one share of each if there would be too many."""
    many = sum(len(result["shares"]) for result in results) > MOST_GROUPS
    out = []
    for result in results:
        shares = [headline(result)] if many else result["shares"]
        for share in shares:
            drawn = [] if share is None else _bars(result, share)
            if drawn:
                title = str(result["titles"].get(share, str(share).replace("_", " ")))
                out.append(Group(f"{about(result)}: {title}" if len(results) > 1 else title, drawn))
    return out


def _bars(result: Result, share: str) -> list[Bar]:
    """Return the bars of one share in every table; tables other than the release are striped."""
    shown = shown_scenarios(result)
    out = []
    before = result["baseline"].get(share)
    if before is not None:
        out.append(Bar(result["before"], before, percent(before), "hollow"))
    for scenario in shown:
        value = scenario["summary"].get(share)
        if value is None:
            continue
        low, high = scenario["bounds"].get(share) or (None, None)
        kind: Kind = "striped" if is_rival(result, scenario) else "solid"
        out.append(Bar(scenario["title"], value, percent(value), kind, low, high))
    return out


# ---------------------------------------------------------------------- what an adversary gains


FURTHER = {"intersection": "from one release"}
"""Attacks that suppose more releases of the same people, and what theirs starts from."""
RELEASE = ("release", "release-rows")
"""What the release itself is called, where an attack compares it with other tables."""
LEADS = (*RELEASE, "all", "all-rows")
"""What stands for an attack as a whole: the release itself, or all published columns at once."""


def attacks_of(material: Material) -> dict[str, Any]:
    """Return every attack that was run, with its main figures first, and those that were not run."""
    return {
        "run": [attack_content(result) for result in material.attacks],
        "not_run": [{"attack": name, "why": why} for name, why in material.not_run.items()],
    }


def attack_content(result: AttackResult) -> dict[str, Any]:
    """Return one result as data: its figures, their names, and the compared tables."""
    told = result.to_dict()
    told["titles"] = {name: result.titles[name] for name in result.titles}
    told["shares"] = list(result.shares)
    told["shown"] = [scenario.name for scenario in result.shown]
    told["before"] = FURTHER.get(result.attack, "before any release")
    told["after"] = [*[name for name in told["shown"] if name in LEADS], told["shown"][-1]][0]
    for scenario in told["scenarios"]:
        scenario["bounds"] = {name: list(pair) for name, pair in scenario.get("bounds", {}).items()}
    return told


def shown_scenarios(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the compared tables, in the order of the result."""
    wanted = set(result["shown"])
    return [scenario for scenario in result["scenarios"] if scenario["name"] in wanted]


def final(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the final scenario: the attack on the release with the largest knowledge of the adversary."""
    return next(scenario for scenario in result["scenarios"] if scenario["name"] == result["after"])


def is_rival(result: Mapping[str, Any], scenario: Mapping[str, Any]) -> bool:
    """Return whether a scenario is about another table that could have been published."""
    return result["after"] in RELEASE and scenario["name"] not in RELEASE


def is_share(result: Mapping[str, Any], figure: str) -> bool:
    """Return whether a figure is a share or a probability: declared as one, or between -1 and 1 and not whole."""
    if figure in result["shares"]:
        return True
    found = [result["baseline"].get(figure), *(s["summary"].get(figure) for s in shown_scenarios(result))]
    values = [value for value in found if value is not None]
    return all(abs(v) <= 1 for v in values) and any(v != int(v) for v in values)


PREFERRED = ("right", "success", "mean_belief")
"""Figures that say most about an attack, where it has them."""


def headline(result: Mapping[str, Any]) -> str | None:
    """Return the main share of an attack: one that is known for the release, and if possible before it."""
    after = final(result)["summary"]
    names = [name for name in result["shares"] if after.get(name) is not None]
    known = [name for name in names if result["baseline"].get(name) is not None] or names
    chosen = [name for name in PREFERRED if name in known] or known
    return chosen[0] if chosen else None
