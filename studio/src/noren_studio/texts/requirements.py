"""Texts of step 3, the requirements."""

from __future__ import annotations

from collections.abc import Mapping

from noren_studio.texts.frame import Tone

NOTHING_ASKED = "Nothing is required yet: a release would promise nothing."
REMOVE = "Remove"
LEAVES_OPEN = "Leaves open"
PROTECTS = "Columns that it protects"
ADD_TITLE = "Add a requirement"
ADD_WHY = "Each stops another adversary. Several may hold at once; every one costs some accuracy."
MODEL = "Model"
ADD = "Add"
REACH = "What is reachable on this table"
REACH_WHY = "The policy is tried without publishing: what every requirement comes to, and what that costs."
TRY = "Try it"
VERDICT_HEADS = (
    "", "Requirement", "Column", ("Asked", "n"), ("Found", "n"), ("People who break it", "n"), ("In words", "n-soft"),
)  # fmt: skip
HOLDS: dict[bool | None, tuple[str, Tone]] = {
    True: ("✓ holds", "good"),
    False: ("✗ fails", "bad"),
    None: ("? undecided", "warn"),
}
ADVERSARIES = "Who is stopped, and who is not"
ADVERSARIES_WHY = "A requirement holds against an adversary who knows so much and no more."
COVERED = "✓ stopped"
NOT_COVERED = "! not covered"
ADVERSARY = (
    ("Looks for a person's row", "knows what others may know of somebody, and looks which row it is."),
    ("Counts values", "has found the few rows that could be a person's, and counts the secrets in them."),
    ("Knows how common values are", "also prefers the common values among those that are left."),
    ("Reads everything published", "learns from all columns and all other people how they go together."),
)


def breaks_now(people: int, of: int, column: str) -> str:
    if not people:
        return f"The table as it is already meets it ({column})."
    return f"Why it matters here: published as it is, {people:,} of {of:,} people would break it ({column})."


def unknown_model(name: str) -> str:
    return f"There is no model {name!r}."


def model_title(name: str) -> str:
    """As a policy writes it: who learns the name here finds it again there."""
    return name


def parameter_of(model: str, field: str, value: object) -> str:
    shown = ", ".join(map(str, value)) if isinstance(value, list) else value
    return f"{model}: {field} = {shown}"


def without(model: str) -> str:
    return f"without {model}"


def with_(model: str) -> str:
    return f"with {model}"


def above(low: float, is_open: bool) -> str:
    return f"More than {low:g}." if is_open else f"At least {low:g}."


def below(high: float, is_open: bool) -> str:
    return f"Less than {high:g}." if is_open else f"At most {high:g}."


def tried_on(records: int) -> str:
    return f"Tried on {records:,} records; nothing was written. The release itself uses every row."


def costs(lost: Mapping[str, float]) -> str:
    ncp = lost.get("ncp_loss")
    return "" if ncp is None else f"What it costs: {ncp:.1%} of the detail of the quasi-identifiers (NCP)."


def unprotected(columns: list[str]) -> str:
    return f"No requirement protects {', '.join(columns)}: name them in one, or give them another role."
