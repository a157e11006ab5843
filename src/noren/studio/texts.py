"""Every English text of the studio, in one file, so that another language is another file.

Constants for what is always the same, functions where a number or a name stands in it. Texts that models and methods
say of themselves (promises, descriptions of fields) live with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Tone = Literal["", "good", "bad", "warn", "accent"]
"""How a text is coloured; it never is the only thing that tells."""

TITLE = "Noren Studio"

# ---------------------------------------------------------------------- the gate and the server

REFUSED = (
    "Noren Studio answers only the browser that it let in.\n\n"
    "Each address with a token works once. Press Enter in the terminal where the studio runs for another one.\n"
)
OTHER_PORT = "Leave --port out to take one that is free."


def at_address(address: str) -> str:
    return f"Noren Studio: {address}\n(for one browser, once; Enter for another address, Ctrl-C to end)"


# ---------------------------------------------------------------------- jobs

NO_MEMORY = "there is not enough memory for this."
NO_MEMORY_HINT = "Close other programs, name fewer columns, or take a machine with more memory."
CHECK_PATH = "Check the path, its permissions and the space left."
REPORT_IT = "Your edits are kept. Please report it: the message names the place and quotes no cell."
CANCEL = "Cancel"
CANCELLED = "Cancelled. Nothing was written."
TRY_AGAIN = "Try again"
STARTING = "Starting"
STALE = "The policy has changed since this was computed."


def worker_ended(how: str) -> tuple[str, str]:
    return f"the computation ended by itself ({how}).", "Your edits are kept. Often it is memory: try fewer columns."


def fault(kind: str, place: str) -> str:
    return f"a fault in Noren: {kind} at {place}. Nothing was published."


def waiting(before: int) -> str:
    return f"Waiting for its turn: {before} before you" if before else "Waiting for its turn: you are next"


def running_for(seconds: float) -> str:
    return f"{seconds:.0f} s"


# ---------------------------------------------------------------------- the frame

UNDO = "Undo"
REDO = "Redo"
LIGHT_OR_DARK = "Light or dark"
MENU = "Menu"
SAVE_SESSION = "Save as policy and script"
END_SESSION = "End this session"
ENDED = "The session has ended. Its files are removed."
END_CONFIRM = "End the session? Edits that you did not save are gone."
KEEP = "Keep working"
HOLDER = "Holder"
RECIPIENT = "Recipient"
AUDITOR = "Auditor"
FIRST_OPEN = "Open a table first: the steps are about one table."
SKIP = "To the content"
OPEN_TABLE = "Open a table"


def undid(words: str) -> str:
    return f"Undone: {words}"


def redid(words: str) -> str:
    return f"Done again: {words}"


# ---------------------------------------------------------------------- the start page

START_TITLE = "What do you want to do?"
START_LEAD = (
    "Everything here runs on this machine. No cell of a table leaves it, and nothing is published before you say so."
)
START = {
    "holder": ("Publish a table about people", "Open a table, decide what each column is, see what is risked and what "
               "is lost, and make a release that provably meets your policy.", "Open a table"),
    "recipient": ("Work with a release", "Open what somebody published, count and estimate with error bars, and take "
                  "charts and tables along.", "Open a release"),
    "auditor": ("Check a release", "Verify its claims, attack it as an adversary would, and look at tables that were "
                "made elsewhere.", "Audit a release"),
}  # fmt: skip

# ---------------------------------------------------------------------- pages

PAGES = {
    "table": ("Table", "What it holds, what it is taken for, and what it gives away as it is."),
    "columns": ("Columns", "What each column is decides how it is protected."),
    "requirements": ("Requirements", "What must hold of anything that is published."),
    "choose": ("Choose", "Ways to meet the requirements: what each risks and what each loses."),
    "release": ("Release", "Make it, check it, sign it, and hand over what is on the public side of the curtain."),
    "recipient": ("Open a release", "What was published, and what can be learned from it."),
    "auditor": ("Audit", "What holds, and what an adversary learns."),
}

# ---------------------------------------------------------------------- step 1: the table

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
    ("Column", ""), ("Role", ""), ("Kind", ""), ("Distinct", "n"), ("Missing", "n"), ("Values", ""), ("Why", ""),
)  # fmt: skip
WHOLE_POLICY_IS_DRAFT = "Requirements and methods were drafted too; the next steps show them."
VERY_MANY = "very many"
KEEP_APART = "Hide them apart"
HIDE_TOGETHER = "Hide them together"
APART_WHY = "Each says what the other is: where their sets meet, the truth may be all that is left."
YOU_DECIDED = "you decided"
ROLE = "Role"
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
}


def opened(name: str) -> str:
    return f"open {name}"


def sampled(rows: int, total: int | None) -> str:
    of = "a longer table" if total is None else f"{total:,}"
    return f"This is about the first {rows:,} rows of {of}, so that it opens at once. Releases use every row."


def histogram(name: str, says: str) -> str:
    return f"Distribution of {name}: {says}"


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
TELLING_HEADS = ("Columns", "People", "Share")


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


# ---------------------------------------------------------------------- saving a session

SAVE_WHY = "The policy says what was decided, the script repeats the release with Python alone. Neither holds a cell."
SAVE_INTO = "Folder"
WRITE = "Write both"
CLOSE = "Close"
NOT_YET = "the policy has problems and cannot be saved as one yet."
NOT_YET_HINT = "Correct what the steps Columns and Requirements name."
OTHER_FOLDER = "Name another folder, or remove it first."


def download(name: str) -> str:
    return f"Download {name}"


def exists(path: object) -> str:
    return f"{path} exists already."


def written(path: object) -> str:
    return f"Written to {path}"


# ---------------------------------------------------------------------- step 2: columns

VALUES_KEEP_NAMES = "only a node can be changed like this, not a value of the table."
PICK_NODE = "Pick a node that stands above values."
MERGE_SIBLINGS = "only what stands side by side under one node can be put together."
TICK_TWO = "Tick two or more nodes or values of one parent."
MOVE_INSIDE = "a node cannot be moved into itself."
MOVE_DEEP = "a node with nodes below it cannot stand among values."
NAME_NEEDED = "a node needs a name."
NAME_HINT = "Give it another name."


def name_taken(label: str) -> str:
    return f"there is a node {label!r} already."


def node(label: str, records: int) -> str:
    return f"{label}  ({records:,})"


KEYS = "Arrows walk through the columns, a digit gives the role of that number."
COLUMN_OPTIONS = {
    "missing": {
        "category": "a value of their own",
        "drop": "drop the record",
        "reject": "refuse the table",
    },
    "rare": {"refuse": "refuse the table", "merge": "put together as (other)"},
    "kind": {
        "": "as understood",
        "text": "texts",
        "integer": "whole numbers",
        "number": "numbers",
        "date": "dates",
        "datetime": "dates with times",
        "boolean": "yes or no",
    },
    "decimal": {"": "as understood", ".": "a point: 1.5", ",": "a comma: 1,5"},
    "format": {
        "": "as understood",
        "%d/%m/%Y": "day first: 31/12/2026",
        "%m/%d/%Y": "month first: 12/31/2026",
        "%d.%m.%Y": "31.12.2026",
        "%d-%m-%Y": "31-12-2026",
        "%Y-%m-%d": "2026-12-31",
        "%Y%m%d": "20261231",
    },
}
OPTION_NAMES = {
    "missing": "Missing cells are",
    "rare": "Values that too few have",
    "kind": "Its cells are",
    "decimal": "Before decimals stands",
    "format": "Dates are written",
}
HIERARCHY = "General values"
NO_VALUES = "Too many different values to list: use bins, or leave the column out."
NO_HIERARCHY = "No hierarchy: numbers become intervals by themselves, other values are listed side by side."
WAY = "Made by"
WAY_NONE = "no hierarchy"
WAYS = {
    "widths": "intervals of a width",
    "quantiles": "intervals of as many people",
    "prefix": "first characters",
    "calendar": "spans of the calendar",
    "frequency": "rare values put together",
    "tree": "a tree, edited by hand",
    "intervals": "intervals with given edges",
    "csv": "a file in ARX's layout",
}
FIRST = {
    "widths": (5, 10, 20, 40),
    "quantiles": (8, 4, 2),
    "prefix": (3, 2, 1),
    "calendar": ("month", "year", "decade"),
    "frequency": (20, 100),
}
RULE_FIELDS = {
    "widths": "Widths, each a multiple of the one before",
    "quantiles": "Numbers of intervals, falling",
    "prefix": "Characters to keep, falling",
    "calendar": "Spans: week, month, quarter, year, decade",
    "frequency": "Fewest records, rising",
}
RULE_HINTS = {
    "widths": "For example 5, 10, 20.",
    "quantiles": "For example 8, 4, 2.",
    "prefix": "For example 3, 1.",
    "calendar": "For example month, year, decade.",
    "frequency": "For example 20, 100.",
}
ARX_OUT = "Save for ARX (CSV)"
ARX_IN = "Load an ARX hierarchy"
NOT_A_TREE = "This makes no hierarchy over the values of the column."
NO_GAPS = "Every value of the table has its place, and every place has a value."
GAPS_HINT = "A release would be refused: give each of them a place."
ORPHANS_HINT = "They do no harm. Often a spelling differs from the table's."
NODE_NAME = "Name of the node"
MOVE_TO = "Node to move under"
TREE_HOW = (
    "Drag a node or a value onto another one; or stand on it (Tab), press m, stand on the other, press m again. "
    "Or tick nodes and values, then:"
)
TICK_FIRST = "Tick a node or a value first."
MERGE = "Put together"
RENAME = "Rename"
SPLIT = "Dissolve"
MOVE = "Move"
MOVE_WHERE = "no node was named to move under."


def moved(what: str, under: str) -> str:
    return f"{what} under {under}"


def option_of(name: str, option: str, value: str) -> str:
    return f"{name}: {option} {value}"


def hierarchy_why(name: str, values: int) -> str:
    return (
        f"{name} has {values:,} values. Where people would stand alone, a more general value is published instead; "
        "fine steps lose less."
    )


def of_values(shown: int, total: int) -> str:
    return f"Shown for the {shown:,} most common of {total:,} values."


def way_of(name: str, way: str) -> str:
    return f"{name}: {way}"


def not_read(written: str) -> str:
    return f"{written!r} cannot be read as a list."


def level(height: int, labels: int) -> str:
    return f"Level {height}: {labels:,}" if height else f"Values: {labels:,}"


def and_more(count: int) -> str:
    return f"and {count:,} more"


def _some(values: list[str]) -> str:
    named = ", ".join(values[:5])
    return named if len(values) <= 5 else f"{named} and {len(values) - 5:,} more"


def gaps(values: list[str]) -> str:
    return f"Without a place: {_some(values)}"


def orphans(values: list[str]) -> str:
    return f"Not in the table: {_some(values)}"


def arx_file(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_" else "_" for char in name)[:60] + ".csv"


def why_quasi(uniques: int, without: int, alone: float) -> str:
    fewer = uniques - without
    return (
        f"Others may know it. {uniques:,} people are alone with all such columns; without this one it would be "
        f"{without:,} ({fewer:,} fewer). Its value alone singles out {alone:.1%} of people."
    )


def why_sensitive(distinct: int | None, value: str, share: float) -> str:
    return (
        f"A secret with {distinct or 0:,} values. Whoever guesses {value!r} of everybody is right for {share:.1%} of "
        "people without any release; what a release adds to that is the risk."
    )


def why_plain(distinct: int | None, rare: int) -> str:
    return f"Published as it is: {distinct or 0:,} values, for anybody to find people by. Only for what is harmless."


def why_identifier(distinct: int | None, rows: int) -> str:
    many = "very many" if distinct is None else f"{distinct:,}"
    return f"{many} different values in {rows:,} rows. It is dropped and never published."


# ---------------------------------------------------------------------- step 3: requirements

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
    ("", ""), ("Requirement", ""), ("Column", ""), ("Asked", "n"), ("Found", "n"), ("People who break it", "n"),
    ("In words", ""),
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


# ---------------------------------------------------------------------- step 4: choose

COMPARE = "Compare candidates"
COMPARE_WHY = "Every method that can meet the requirements is tried and verified on this table. Nothing is published."
GRID = "Parameters to sweep (optional)"
SUPPRESSION = "Share that may be left out (optional)"
COMPARE_GO = "Compare"
COMPARED_SOME = "Compared on 20,000 records drawn by chance, so that it takes seconds; the release uses every row."
MAP = "Risk and loss"
MAP_WHY = "Down and to the left is better: fewer secrets guessed right, smaller errors of counts. Click two to compare."
RISK_AXIS = "share of people whose secret is guessed right"
LOSS_AXIS = "error of count queries"
CANDIDATES = "Candidates that hold"
CANDIDATES_WHY = "Tick two to see them side by side. Adopting one writes its method into the policy."
CANDIDATE_HEADS = (
    ("", ""), ("Method", ""), ("Right guesses", "n"), ("Query error", "n"), ("NCP", "n"), ("Smallest class", "n"),
    ("Left out", "n"), ("Seconds", "n"), ("", ""),
)  # fmt: skip
BEST = "suggested"
FRONT = "not beaten"
ADOPT = "Adopt"
PAIR = "Side by side"
PAIR_WHY = "The original and the ticked candidates as they would be published: what changes, and for how many."
PAIR_TICK = "Tick one or two candidates in the table, or click them on the map."
DISTRIBUTIONS = "Distributions: the original, and what a recipient estimates"
ORIGINAL = "Original"
EXCERPT = "An excerpt of rows (a release is shuffled: rows do not stand beside their originals)"
SIZE_HEADS = ("People who look alike", "People")
NO_ESTIMATE = "no estimate"
LATTICE = "Levels of general values"
LATTICE_WHY = "Incognito publishes every column at one level. Lower points keep more detail; larger ones lose less."
LEVELS_HEADS = (("Levels", ""), ("Loss", "n"), ("Classes", "n"), ("Left out", "n"), ("", ""))
LATTICE_GO = "Find the best levels"
LATTICE_NONE = "No levels meet the requirements: allow some people to be left out, or ask for less."


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _figure(number: float | None, digits: int = 3) -> str:
    return "-" if number is None else f"{number:.{digits}f}"


def candidate_figures(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        _percent(one["risk"]),
        _figure(one["error"]),
        _figure(one["ncp"]),
        f"{one['smallest']:g}",
        f"{one['suppressed']:,}" if one["suppressed"] else "-",
        _figure(one["seconds"], 1),
    )


def tip(one: Mapping[str, Any]) -> str:
    return (
        f"{one['called']}\nright guesses {_percent(one['belief'])}\nquery error {_figure(one['error'])}\n"
        f"NCP {_figure(one['ncp'])}\nsmallest class {one['smallest']:g}\nleft out {one['suppressed']:,}"
    )


def side_by_side_with(called: str) -> str:
    return f"Show {called} side by side"


def chose(called: str) -> str:
    return f"method: {called}"


def chosen_says(called: str) -> str:
    return f"{called} is written into the policy."


def failed(count: int) -> str:
    return f"{count} that publish nothing, and why"


def pair_go(names: list[str]) -> str:
    return f"Look at {' and '.join(names)}"


def classes_of(name: str) -> str:
    return f"Classes: {name}"


def values_shown(count: int) -> str:
    return "1 value" if count == 1 else f"{count:,} values"


def vector(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in levels.items())


def lattice_order(names: Sequence[str]) -> str:
    return f"The numbers beside a point are the levels of {', '.join(names)}; 0 is the value itself."


def short_vector(levels: Mapping[str, int]) -> str:
    return " ".join(str(level) for level in levels.values())


def levels_figures(one: Mapping[str, Any]) -> tuple[str, ...]:
    return f"{one['loss']:.4g}", f"{one['classes']:,}", f"{one['dropped']:,}" if one["dropped"] else "-"


def vector_tip(one: Mapping[str, Any]) -> str:
    named = "\n".join(f"{name}: level {level} of {one['heights'][name]}" for name, level in one["levels"].items())
    return f"{named}\nloss {one['loss']:.4g}\nclasses {one['classes']:,}\nleft out {one['dropped']:,}"


# ---------------------------------------------------------------------- step 5: release

STAYS = "Stays with you"
STAYS_WHY = "Behind the curtain: nothing of this is ever written into a release."
ORIGINAL_TABLE = "the original table"
NEVER_PUBLISHED = "columns that are not published"
RANDOMNESS = "Randomness"
RANDOMNESS_SAYS = "made for this release, and forgotten"
OFFICERS_REPORT = "The officer's report"
REPORT_SAYS = "holder only: its figures rest on the original"
SIGNING_KEY = "Your signing key"
KEY_SAYS = "signs, and is never published; its public half is"
PUBLISHED = "Is published"
NOTHING_YET = "Nothing yet. A release is made in a private folder and verified; it is published when you hand it over."
MAKE = "Make the release"
MAKE_AGAIN = "Make it again"
STALE_RELEASE = "The policy has changed since this release was made. Make it again, or undo."
VERDICTS = "What holds"
VERDICTS_WHY = (
    "Judged on what was written, by code that the method does not share. If one failed, nothing was published."
)
RECORDS_PUBLISHED = "records published"
LEFT_OUT = "records left out"
NCP_SAYS = "of the detail of quasi-identifiers is lost (NCP)"
ALL_HOLD = "requirements, and every one holds"
NOT_ALL_HOLD = "requirements hold; not all do"
REPORT = "The officer's report"
REPORT_WHY = "Every attack that applies, against the raw table and against the release; one page for whoever must sign."
REPORT_GO = "Attack it and write the report"
ATTACK_HEADS = (
    ("Attack", ""), ("What is measured", ""), ("No release", ""), ("Raw table", ""), ("This release", ""),
    ("What that is, and what the adversary knows", ""),
)  # fmt: skip
HAND_OVER = "Hand it over"
HAND_OVER_WHY = "A folder, a file that ends in .zip, or postgresql://...?schema=name. What exists is never overwritten."
SAVE_TO = "Where to"
FORMAT = "Format"
KEY_FILE = "Signing key (optional)"
PASSPHRASE = "Its passphrase"
NEW_KEY = "make this key"
SAVE = "Hand over"
SIGNED_HINT = (
    "Give recipients the public key (.pub) by another way, so that they can tell your releases from forged ones."
)
UNSIGNED_HINT = "Without a signature recipients cannot tell it from a forged one: give a key to sign it."


def will_be(names: Sequence[str]) -> str:
    return f"To be published, once every requirement holds: {', '.join(names)}."


def published_of(records: int, columns: int) -> str:
    return f"{records:,} records, {columns} columns, in an order that says nothing."


def file_of(name: str, size: int) -> str:
    return f"{name}  {size / 1024:,.0f} KB"


def saved(place: str, signer: str | None) -> str:
    signed = f", signed by {signer}" if signer else ", not signed"
    return f"Handed over to {place}{signed}."
