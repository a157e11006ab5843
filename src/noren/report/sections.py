"""The parts of the page that say what a release is: what was published, what holds, what is open, how to check it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noren.report.attacks import about
from noren.report.gains import FURTHER, RELEASE, final, headline
from noren.report.html import (
    HOLDER,
    Markup,
    code,
    element,
    join,
    listing,
    number,
    paragraph,
    percent,
    section,
    table,
)
from noren.report.words import GROUNDS

Content = Mapping[str, Any]
WORDS = {True: "\u2713 holds", False: "\u2717 fails", None: "? undecided"}


def header(content: Content) -> Markup:
    """Title, for whom the page is, and the whole story in a few lines."""
    if content["holder_only"]:
        whom = paragraph(HOLDER, " Computed from the original table. Do not publish this page.")
    else:
        mark = element("span", "For anybody", class_="mark open")
        whom = paragraph(mark, " Computed from the published release, without the original table.")
    date = element("time", content["date"][:10], datetime=content["date"])
    made = paragraph("Report of ", date, f", made with noren {content['reproduce']['versions']['noren']}.")
    short = element(
        "section",
        element("h2", "In short", id="short"),
        listing(_short(content)),
        class_="short",
        aria_labelledby="short",
    )
    return join([element("h1", content["title"]), whom, made, short])


def _short(content: Content) -> list[object]:
    published, verdicts = content["published"], content["verdicts"]
    out: list[object] = [f"Published: {published['records']:,} records with {len(published['columns'])} columns."]
    bad = [v for v in verdicts if v["holds"] is False]
    unsure = [v for v in verdicts if v["holds"] is None]
    if not verdicts:
        out.append("Nothing was required of the release, so nothing was checked.")
    elif bad:
        out.append(f"{len(bad)} of {len(verdicts)} checks fail: do not rely on this release.")
    elif unsure:
        out.append(f"{len(unsure)} of {len(verdicts)} checks cannot be decided from what is at hand; the others hold.")
    else:
        checks = f"All {len(verdicts)} checks hold" if len(verdicts) > 1 else "The one check holds"
        out.append(f"{checks}, on the published cells.")
    out += _largest_gain(content["attacks"]["run"])
    out.append("What is not protected stands in a section of its own; read it before you publish or rely on the data.")
    return out


def _largest_gain(run: Sequence[Mapping[str, Any]]) -> list[object]:
    """How many attacks were simulated, and which of them gains most by its own figure."""
    found = []
    for result in run:
        name, last = headline(result), final(result)
        before = None if name is None else result["baseline"].get(name)
        if name is not None and before is not None and result["attack"] not in FURTHER:
            found.append((last["summary"][name] - before, result, name, before, last))
    if not run:
        return []
    kinds = len({result["attack"] for result in run})
    text = f"{kinds} kinds of attack were simulated." if kinds > 1 else "One kind of attack was simulated."
    if not found:
        return [text]
    gain, result, name, before, last = max(found, key=lambda one: one[0])
    title = result["titles"].get(name, name.replace("_", " "))
    if gain <= 0:
        return [f"{text} None gains anything by its own figure."]
    text += f" The {result['attack']} attack on {about(result)} gains most: {title} {percent(before)} before, "
    how = "" if last["name"] in RELEASE else f" ({last['title']})"
    text += f"{percent(last['summary'][name])} after{how}."
    return [join([text, HOLDER], " ") if last["holder_only"] else text]


# ---------------------------------------------------------------------- what was published


def published(content: Content) -> Markup:
    told = content["published"]
    words = [_summary(content), paragraph(f"Method: {told['method']}. {told['in_words']}")]
    if told.get("not_published"):
        words.append(paragraph(f"In the policy and not published: {', '.join(told['not_published'])}."))
    rows = [
        [
            column["name"],
            column["role"],
            column["published"],
            number(column["values"]) if column["values"] else "open",
            column["domain_from"],
            ", ".join(column["requirements"]) or "nothing",
        ]
        for column in told["columns"]
    ]
    columns = ("Column", "Role", "Published", "Values", "Domain from", "Required")
    return section("published", "What was published", *words, table("Published columns", columns, rows, (3,)))


def _summary(content: Content) -> Markup:
    told = content["published"]
    words = [f"{told['records']:,} records."]
    if told.get("dropped"):
        words.append(f"{told['dropped']:,} records were dropped for missing values.")
    if told["suppressed"]:
        share = told["suppressed"] / (told["records"] + told["suppressed"])
        words.append(f"{told['suppressed']:,} records ({share:.2%}) were suppressed to protect the others.")
    words.append(
        "Identifiers were dropped." if content["holder_only"] else "No published column has the role of an identifier."
    )
    words.append("The rows are in a random order that has nothing to do with the original's.")
    if told["layout"] == "general":
        words.append(
            "General values and groups were chosen for these records together: a second release of the same people "
            "would choose others, and the two could be intersected."
        )
    elif told["randomness"] == "memoised":
        words.append("Decoys are memoised: a person with the same value keeps the same decoys in every release.")
    else:
        words.append(
            "Decoys are fresh: a second release of the same people would draw new ones, and the two could be "
            "intersected. Use a secret and a record key before you publish the same people again."
        )
    return paragraph(" ".join(words))


# ---------------------------------------------------------------------- guarantees and verdicts


def holds(content: Content) -> Markup:
    promised = [
        [_parameters(one), ", ".join(one["on"]) or "all quasi-identifiers", one["promise"], one["not_promised"]]
        for one in content["guarantees"]
    ]
    parts: list[object] = [
        element("h3", "What is promised"),
        table("Guarantees in plain words", ("Requirement", "Columns", "What it promises", "What it does not"), promised)
        if promised
        else paragraph("The release states no requirement."),
        element("h3", "What was found"),
        paragraph("Every line was checked on the published cells, by code that took no part in making them."),
    ]
    if content["verdicts"]:
        parts.append(_verdicts(content))
        grounds = {v["basis"]: GROUNDS.get(v["basis"], "") for v in content["verdicts"]}
        parts.append(
            table("What a verdict rests on", ("Ground", "What it means"), [[a, b] for a, b in grounds.items()])
        )
    return section("holds", "What holds", *parts)


def _parameters(one: Mapping[str, Any]) -> str:
    simple = {n: v for n, v in one["parameters"].items() if isinstance(v, int | float | str)}
    told = ", ".join(f"{n}\xa0=\xa0{number(v) if isinstance(v, int | float) else v}" for n, v in simple.items())
    return f"{one['model']} ({told})" if told else str(one["model"])


def _verdicts(content: Content) -> Markup:
    rows = []
    for v in content["verdicts"]:
        asked, found = number(v["required"]), "-" if v["achieved"] is None else f"{v['achieved']:.4g}"
        short = f"; {v['breaches']:,} of {v['records']:,} records fall short" if v["breaches"] else ""
        ground = join([v["basis"], HOLDER], " ") if v["holder_only"] else v["basis"]
        rows.append([v["column"], v["model"], asked, found, WORDS[v["holds"]], v["statement"] + short, ground])
    columns = ("Column", "Requirement", "Asked", "Found", "Verdict", "In words", "Ground")
    return table("Verdicts", columns, rows, (2, 3))


# ---------------------------------------------------------------------- limits and reproduction


def limits(content: Content) -> Markup:
    items = [join([element("strong", f"{_capital(one['about'])}."), one["text"]], " ") for one in content["limits"]]
    return section("limits", "What is not protected", listing(items))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def reproduce(content: Content) -> Markup:
    told = content["reproduce"]
    parts: list[object] = [
        paragraph(f"Made with noren {told['release_made_with']}; this report with {told['versions']['noren']}.")
    ]
    if told["commands"]:
        items = [
            join([f"{one['what']}: ", code(one["command"]), " ", HOLDER if one["holder_only"] else ""], "")
            for one in told["commands"]
        ]
        parts += [element("h3", "Commands"), listing(items)]
    parts.append(element("h3", "Checksums"))
    if told["files"]:
        rows = [[f["name"], f"{f['bytes']:,}", code(f"sha256:{f['sha256']}")] for f in told["files"]]
        parts.append(table("Files of the release", ("File", "Bytes", "Checksum"), rows, (1,)))
        parts.append(
            paragraph(
                "Publish the checksum of ",
                code(told["files"][0]["name"]),
                " through another channel if recipients must be able to tell your release from a forged one.",
            )
        )
    else:
        parts.append(paragraph("The release was not written to a directory, so that it has no files to check."))
    if "original" in told:
        sha = code(f"sha256:{told['original']['sha256']}")
        parts.append(paragraph(HOLDER, f" The original {told['original']['name']}: ", sha, "."))
    parts += _policy(told)
    parts += [element("h3", "Versions"), table("Software", ("Name", "Version"), list(told["versions"].items()))]
    if told["seconds"]:
        timing = ", ".join(f"{name} {value:.2f} s" for name, value in told["seconds"].items())
        parts.append(paragraph(f"Time: {timing}."))
    return section("reproduce", "How to check and reproduce", *parts)


def _policy(told: Mapping[str, Any]) -> list[object]:
    if "policy" not in told:
        return []
    policy = told["policy"]
    if policy.get("note"):
        return [element("h3", "Policy"), paragraph(policy["note"])]
    return [
        element("h3", "Policy"),
        paragraph(
            policy["name"], ": ", code(f"sha256:{policy['sha256']}"), ". It also names columns that are not published."
        ),
        element("pre", policy["text"]),
    ]
