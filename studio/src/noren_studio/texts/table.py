"""Texts of step 1, the table."""

from __future__ import annotations

OPEN_TITLE = "Open a table"
OPEN_WHY = "One row per person, or several rows of one person: Noren does not change or move the file."
OPEN_PATH = "Path of a file, or postgresql://..."
OPEN_PATH_EXAMPLE = "/data/patients.csv"
OPEN = "Open"
BROWSE = "Browse"
DEMO = "Try the demo"
DROP = "Or drop a file here (CSV, Parquet, Arrow, Excel)"
TOO_LARGE = "The file is too large to be uploaded: name its path instead."
UPLOADS_PRIVATE = "A dropped file is copied into a private folder, which is removed when the session ends."
OPEN_ANOTHER = "Open another table"
PICK_FILE = "Pick a table"
PICK_FOLDER = "Pick a folder"
THIS_FOLDER = "Take this folder"
UP = "One folder up"
ROWS = "rows"
COLUMNS = "columns"
PEOPLE_KEY = "says whose row it is"
EACH_ROW = "Each row"
MANY_ROWS = "Very many"
STUDY_ALL = "Study every row"
UNDERSTOOD = "What Noren understood"
UNDERSTOOD_WHY = (
    "Every role is a guess with its reason. Correct wrong guesses here, because they cost privacy or accuracy."
)
COLUMN_HEADS = {"name": "Column", "role": "Role", "short": "Role", "kind": "Kind", "distinct": "Distinct",
                "missing": "Missing", "bars": "Values", "why": "Why", "state": "Decided"}  # fmt: skip
SEARCH = "Search"
SHOW_ONLY = "Show"
ALL_COLUMNS = "All columns"
FOR_YOU = "Decided for you"
ROLE_OF_TICKED = "Role of the ticked"
TICK_ALL = "Tick all columns"
TICK_COLUMNS = "Tick one or more columns first."
ACCEPT = "Accept"
REVIEWED = "reviewed"
WHOLE_POLICY_IS_DRAFT = "Requirements and methods were drafted too; the next steps show them."
VERY_MANY = "very many"
KEEP_APART = "Hide them apart"
HIDE_TOGETHER = "Hide them together"
APART_WHY = "These columns disclose each other: their sets together may leave only the true value."
YOU_DECIDED = "you decided"
WHOSE = "Whose rows are they?"
EVERY_ROW_A_PERSON = "Every row is a different person"
NO_KEY = "Requirements count people. If a person has several rows, choose the column that identifies people."
PREVIEW = "Rows"
ROLES = {
    "identifier": ("Identifier", "names a person; never published"),
    "quasi-identifier": ("Quasi-identifier", "others may know it; generalised until nobody is unique"),
    "sensitive": ("Sensitive", "a secret; hidden get other possible values"),
    "sensitive-quasi-identifier": ("Both", "others may know it, and it is a secret"),
    "quasi-sensitive": ("Quasi-sensitive", "terms that outside knowledge links to secrets"),
    "plain": ("Plain", "harmless; published unchanged"),
    "drop": ("Drop", "not wanted in the release; never published"),
}


def opened(name: str) -> str:
    return f"open {name}"


def tick(name: str) -> str:
    return f"Tick {name}"


def accept(name: str) -> str:
    return f"Accept the draft for {name}"


def accept_all(count: int) -> str:
    return f"Accept all {count:,} drafts" if count > 1 else "Accept the draft"


def counted(what: str, count: int) -> str:
    return f"{what} ({count:,})"


def columns_named(count: int) -> str:
    return f"{count:,} columns"


def first_columns(shown: int, total: int) -> str:
    return f"The first {shown} of {total:,} columns."


def sampled(rows: int, total: int | None) -> str:
    of = "a longer table" if total is None else f"{total:,}"
    return f"This is about the first {rows:,} rows of {of}, so that it opens at once. Releases use every row."


def histogram(name: str, says: str) -> str:
    return f"Distribution of {name}: {says}"


def role_for(name: str) -> str:
    return f"Role of {name}"


def rows_with_same(name: str) -> str:
    return f"Rows with the same {name} are one person's"


def key_is(name: str) -> str:
    return f"{name} identifies people" if name else "every row is a person"


def together(columns: list[str]) -> str:
    return f"Hidden together: {', '.join(columns)}"


def apart(columns: list[str]) -> str:
    return f"Hidden apart: {', '.join(columns)}"


def preview_of(rows: int, total: int | None) -> str:
    return (
        f"The first {rows:,} rows as they are read. This is the original; it is never published."
        if (total is None or total > rows)
        else f"All {rows:,} rows. This is the original; it is never published."
    )


RISK = "What the raw table discloses"
RISK_WHY = "How many people could be found in the raw table by the columns that others may know."
RISK_NEEDS_POLICY = "The policy has problems; correct them in the next steps, then the risk can be computed."
RISK_GO = "Measure it on every row"
COMPUTE_AGAIN = "Compute again"
SMALLEST_K = "people share all quasi-identifiers (smallest k)"
MEAN_RISK = "of people would be found by guessing among the records with the same quasi-identifiers"
LOOK_ALIKE = "Sizes of equivalence classes"
MOST_TELLING = "Columns that make most people unique"
ALIKE_HEADS = ("People who look like them", "", ("People", "n"))
TELLING_HEADS = ("Columns", ("People", "n"), ("Share", "n"))


def alone_with_all(share: float) -> str:
    return f"people ({share:.1%}) are unique in all quasi-identifiers"


def risk_sentence(uniques: int, people: int, quasi: list[str]) -> str:
    if not uniques:
        return f"Nobody is unique in {', '.join(quasi)}: all {people:,} people share them with somebody else."
    return (
        f"Somebody who knows {', '.join(quasi)} of a person finds the row with certainty for {uniques:,} of "
        f"{people:,} people."
    )


def people_share(words: str, people: int) -> str:
    return f"{people:,} people look like {words}"


def back_to(name: str) -> str:
    return f"Back to {name}"
