"""Texts of step 1, the table."""

from __future__ import annotations

OPEN_TITLE = "Open a table"
OPEN_WHY = "One row per person, or several rows of one person: Noren reads it where it is and changes nothing."
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
UNDERSTOOD_WHY = "Every role is a guess with its reason. A wrong one costs privacy or accuracy: correct it here."
COLUMN_HEADS = (
    ("Column", "n-key"), ("Role", ""), ("Kind", ""), ("Distinct", "n"), ("Missing", "n"), ("Values", ""),
    ("Why", "n-soft"),
)  # fmt: skip
WHOLE_POLICY_IS_DRAFT = "Requirements and methods were drafted too; the next steps show them."
VERY_MANY = "very many"
KEEP_APART = "Hide them apart"
HIDE_TOGETHER = "Hide them together"
APART_WHY = "Each says what the other is: where their sets meet, the truth may be all that is left."
YOU_DECIDED = "you decided"
WHOSE = "Whose rows are they?"
EVERY_ROW_A_PERSON = "Every row is a person of its own"
NO_KEY = "Requirements count people. If a person has several rows, name the column that says who it is."
PREVIEW = "Rows"
ROLES = {
    "identifier": ("Identifier", "names a person; never published"),
    "quasi-identifier": ("Quasi-identifier", "others may know it; made general until nobody stands alone"),
    "sensitive": ("Sensitive", "a secret; hidden among other values"),
    "sensitive-quasi-identifier": ("Both", "others may know it, and it is a secret"),
    "quasi-sensitive": ("Quasi-sensitive", "terms that outside knowledge links to secrets"),
    "plain": ("Plain", "harmless; published as it is"),
    "drop": ("Drop", "not wanted in the release; never published"),
}


def opened(name: str) -> str:
    return f"open {name}"


def sampled(rows: int, total: int | None) -> str:
    of = "a longer table" if total is None else f"{total:,}"
    return f"This is about the first {rows:,} rows of {of}, so that it opens at once. Releases use every row."


def histogram(name: str, says: str) -> str:
    return f"Distribution of {name}: {says}"


def role_for(name: str) -> str:
    return f"Role of {name}"


def role_of(name: str, role: str) -> str:
    return f"{name}: {role.lower()}"


def rows_with_same(name: str) -> str:
    return f"Rows with the same {name} are one person's"


def key_is(name: str) -> str:
    return f"people are told apart by {name}" if name else "every row is a person"


def together(columns: list[str]) -> str:
    return f"Hidden together: {', '.join(columns)}"


def apart(columns: list[str]) -> str:
    return f"Hidden apart: {', '.join(columns)}"


def preview_of(rows: int, total: int | None) -> str:
    return (
        f"The first {rows:,} rows as they are read. This is the original: it never leaves the holder's side."
        if (total is None or total > rows)
        else f"All {rows:,} rows. This is the original: it never leaves the holder's side."
    )


RISK = "What the table gives away as it is"
RISK_WHY = "Before anything is released: who could be found by the columns that others may know."
RISK_NEEDS_POLICY = "The policy has problems; correct them in the next steps, then the risk can be computed."
RISK_GO = "Measure it on every row"
COMPUTE_AGAIN = "Compute again"
SMALLEST_K = "people at least look alike (smallest k)"
MEAN_RISK = "of people are found by picking at random among those who look alike"
LOOK_ALIKE = "How many people look alike"
MOST_TELLING = "Columns that most people are alone with"
ALIKE_HEADS = ("People who look like them", "", ("People", "n"))
TELLING_HEADS = ("Columns", ("People", "n"), ("Share", "n"))


def alone_with_all(share: float) -> str:
    return f"people ({share:.1%}) are alone with all quasi-identifiers"


def risk_sentence(uniques: int, people: int, quasi: list[str]) -> str:
    if not uniques:
        return f"Nobody is alone with {', '.join(quasi)}: every one of {people:,} people looks like somebody else."
    return (
        f"Whoever knows {', '.join(quasi)} of somebody finds that person's row with certainty for {uniques:,} of "
        f"{people:,} people."
    )


def people_share(words: str, people: int) -> str:
    return f"{people:,} people look like {words}"


def back_to(name: str) -> str:
    return f"Back to {name}"
