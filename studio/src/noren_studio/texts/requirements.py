"""Texts of step 3, the requirements."""

from __future__ import annotations

from collections.abc import Mapping

from noren_studio.texts.frame import Tone

NOTHING_ASKED = "The policy has no requirement yet, so a release would guarantee nothing."
REMOVE = "Remove"
LEAVES_OPEN = "Leaves open"
PROTECTS = "Columns that it protects"
ADD_TITLE = "Add a requirement"
ADD_WHY = "Each requirement protects against another adversary. You can combine them; each costs some accuracy."
MODEL = "Model"
ADD = "Add"
REACH = "What this table can reach"
REACH_WHY = "Noren tries the policy without publishing, and shows what every requirement reaches and costs."
TRY = "Try it"
VERDICT_HEADS = (
    "", ("Requirement", "n-key"), ("Column", "n-key"), ("Asked", "n"), ("Found", "n"), ("People who break it", "n"),
    ("In words", "n-soft"),
)  # fmt: skip
HOLDS: dict[bool | None, tuple[str, Tone]] = {
    True: ("✓ holds", "good"),
    False: ("✗ fails", "bad"),
    None: ("? undecided", "warn"),
}
ADVERSARIES = "Adversaries that the policy stops"
ADVERSARIES_WHY = "A requirement protects only against an adversary with this knowledge."
COVERED = "✓ stopped"
NOT_COVERED = "! not covered"
ADVERSARY = (
    ("Looks for a person's row", "knows the quasi-identifiers of somebody, and looks for the person's row."),
    ("Counts values", "has found the few rows that could be a person's, and counts the secrets in them."),
    ("Knows how common values are", "guesses the most frequent of the remaining values."),
    ("Reads everything published", "learns from all other people how the columns are related."),
)


def breaks_now(people: int, of: int, column: str) -> str:
    if not people:
        return f"The table as it is already meets it ({column})."
    return f"Why it matters here: published as it is, {people:,} of {of:,} people would break it ({column})."


def unknown_model(name: str) -> str:
    return f"There is no model {name!r}."


def model_title(name: str) -> str:
    """Return the name of a model as in a policy."""
    return name


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
