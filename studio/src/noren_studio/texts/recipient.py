"""English texts of the recipient's page; `texts` has those of the frame and of the holder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from noren_studio.texts import Tone

# ---------------------------------------------------------------------- opening

OPEN_TITLE = "Open a release"
OPEN_WHY = "A release: a folder with a datapackage.json, a ZIP file of such a folder, or a PostgreSQL schema."
PLACE = "Folder of a release, ZIP file, or postgresql://host/base?schema=..."
PLACE_EXAMPLE = "/data/patients-release"
DEMO = "Open the demo's release"
OF_SESSION = "Open the release made here"
OTHER = "Open another release"
NOT_TRUSTED = "Forged or damaged: do not use it"
NOT_OPENED = "It cannot be opened"


def opened(name: str) -> str:
    return f"open release {name}"


# ---------------------------------------------------------------------- what it is

VERIFYING = "Verifying in the background"
VERIFY_STOPPED = "Not verified: it was cancelled"
VERIFY_AGAIN = "Verify"
STATUS: Mapping[bool | None, tuple[str, Tone]] = {
    True: ("✓ Verified", "good"),
    False: ("✗ Does not meet its claims", "bad"),
    None: ("? Not everything can be decided", "warn"),
}
STATUS_SAYS: Mapping[bool | None, str] = {
    True: "Every claimed requirement was recomputed from the cells, by independent code.",
    False: "A claimed requirement does not hold when it is recomputed from the cells: the release is forged or faulty.",
    None: 'No requirement fails, but at least one cannot be decided from the release. Undecided does not mean "holds".',
}
NOT_SIGNED = "Not signed"
SIGNER = "Anybody can sign, so compare these digits with those that the holder gave you in another way."
UNSIGNED = "Somebody who changes a release can change its checksums too: ask the holder for a signed release."
COLUMNS = "Columns and how they are published"
COLUMN_HEADS = (("Column", "n-key"), ("Published", "n-soft"), ("Values", "n"), ("Hierarchy levels", ""))


def signed(fingerprint: str) -> str:
    return f"Signed by {fingerprint}"


def facts(found: Mapping[str, Any], place: str) -> list[tuple[str, str]]:
    """Return the summary of a release in ten lines."""
    methods = ", ".join(one["name"] for one in found["methods"]) or "none"
    required = ", ".join(dict.fromkeys(found["requirements"])) or "nothing"
    hidden, columns = found["hidden"], found["columns"]
    several = f"up to {found['most_rows']}" if found["most_rows"] else "several"
    rows = "a person" if found["people"] else f"not a person: people may have {several}"
    if found["rows"] != found["records"]:
        rows = f"one possible value: {found['rows']:,} rows describe {found['records']:,} people"
    randomness = "drawn anew for this release" if found["randomness"] == "fresh" else "the same in every release"
    return [
        ("Title", found["title"] or place),
        ("Records", f"{found['records']:,}"),
        ("Left out", f"{found['suppressed']:,} people, to protect the others" if found["suppressed"] else "nobody"),
        ("A row is", rows),
        ("Columns", f"{columns}: {columns - hidden} as they are, {hidden} hidden"),
        ("Sample", f"every record with probability {found['sample']:g}" if found["sample"] else "no, the whole table"),
        ("Made by", methods),
        ("Chance", randomness if hidden else "none"),
        ("It claims", required),
        ("Software", f"Noren {found['noren']}, format {found['format']}"),
    ]


# ---------------------------------------------------------------------- asking

ASK = "Ask"
KINDS = {
    "count": "Count", "number": "Number", "model": "Model", "test": "Test", "tables": "Tables", "margins": "Margins"
}  # fmt: skip
KIND_WHY = {
    "count": "The number of records, by any columns. Rows and columns together make a heat map.",
    "number": "A mean, quantile or correlation for every group, with its interval.",
    "model": "A regression of one column on others, corrected for decoys.",
    "test": "Tests whether two columns are related; the test is exact for hidden columns too.",
    "tables": "Complete tables with plausible values, for tools that need one value in each cell.",
    "margins": "Counts that the holder published with noise. Estimates use these counts automatically.",
}
ROWS = "Rows"
COLUMNS_OF = "Columns"
FILTERS = "Only records where"
ADD_FILTER = "Add a filter"
REMOVE = "Remove this filter"
FILTER_COLUMN = "Column"
FILTER_HOW = "is"
HOWS = {"in": "is one of", "range": "lies between", "all": "has all of"}
VALUES = "Values"
AT_LEAST = "At least"
BELOW = "Below"
ESTIMATOR = "Estimator"
ESTIMATOR_AUTO = "automatic"
LEVEL = "Intervals"
LEVELS = {0.9: "90%", 0.95: "95%", 0.99: "99%"}
CHART = "Chart"
CHARTS = {"auto": "automatic", "bar": "bars", "grouped": "grouped bars", "heatmap": "heat map"}
POPULATION = "for the population"
POPULATION_WHY = "Intervals then include the sampling error."
MEASURE = "Number"
MEASURES = {"mean": "mean", "variance": "variance", "quantile": "quantile", "correlation": "correlation",
            "difference": "difference of means", "ratio": "ratio of means"}  # fmt: skip
OF = "Of column"
SECOND = "And column"
SHARE = "Share of the value"
AT = "At (0.5 is the median)"
BY = "For every group of"
AGAINST = "Against the group"
FIRST_GROUP = "the first"
RESPONSE = "Explain"
TERMS = "By"
FAMILY = "Family"
FAMILIES = {"gaussian": "a number (gaussian)", "binomial": "yes or no (binomial)", "poisson": "a count (poisson)",
            "multinomial": "one of several (multinomial)", "ordinal": "one of several in order (ordinal)"}  # fmt: skip
FIT = "Fit"
FITS = {"": "automatic", "scores": "scores", "likelihood": "likelihood"}
FORMULA = "Or a formula"
FORMULA_EXAMPLE = "age ~ C(job) + admission_year"
ONE = "Column"
TWO = "And column"
TABLES = "Plausible tables"
TABLES_WHY = "Good for machine learning. Intervals pooled from them are too narrow; use the questions above."
SEED = "Seed"
MARGIN = "Counts by"
UNWEIGHTED = "count records instead of weighted people"
UNWEIGHTED_WHY = "The release has survey weights; answers use them unless this option is on."
NO_MARGINS = "this release has no margin of these columns."
NO_MARGINS_HINT = "Choose another one."
ESTIMATE = "Estimate"
ALL_RECORDS = "all records"

CHOOSE_COLUMN = "no column is chosen."
CHOOSE_COLUMN_HINT = "Choose a column for the rows, or add a filter to count records."
CHOOSE_NUMBER = "no column of numbers is chosen."
CHOOSE_NUMBER_HINT = "Choose one. For a column of categories, choose the value whose share you want."
CHOOSE_GROUPS = "a difference or ratio needs groups."
CHOOSE_GROUPS_HINT = 'Choose a column under "For every group of".'
CHOOSE_MODEL = "the model is not complete."
CHOOSE_MODEL_HINT = "Choose the response and the explaining columns, or write a formula."
CHOOSE_TWO = "two columns are needed."
CHOOSE_TWO_HINT = "Choose both."


def at_level(name: str, level: int, count: int, few: Sequence[str]) -> str:
    return f"{name}@{level}: {count} groups ({', '.join(few)}{', ...' if count > len(few) else ''})"


def in_widths(name: str, width: str) -> str:
    return f"{name}/{width}: intervals of {width}"


# ---------------------------------------------------------------------- the answer

CSV, PNG, SVG = "CSV", "PNG", "SVG"
PYTHON = "The same in Python"
PYTHON_WHY = "It needs the release and Noren, but not the studio."
COPY = "Copy"
COPIED = "Copied"
PASSWORD = "The address does not contain the password: set it in the environment or the pass file."
PRIVATE_PLACE = "This release is in a temporary folder and is removed when the session ends."
BEFORE = "This answer is for the previous question."
NO_PICTURE = "No chart:"
MEASURED = {"count": "estimate", "std_error": "std. error", "low": "low", "high": "high"}


def summary(answer: Mapping[str, Any]) -> str:
    parts = [answer["how"], answer["bars"], f"{answer['records']:,} records"]
    return ", ".join(part for part in parts if part)


def chart_of(call: str) -> str:
    return f"Chart of {call}; its numbers are in the table below"


def between(low: str, high: str) -> str:
    return f"interval: {low} to {high}"


def margin_said(epsilon: float) -> str:
    return f"Every count has its own noise (epsilon {epsilon:g}): it may be negative."


def design_effect(effect: float) -> str:
    return f"Survey weights are used: unequal weights cost as much as {effect:.2f} times fewer records."


def not_a_zip(name: str) -> str:
    return f"{name} cannot be read as a ZIP file."


def releases_in_zip(count: int) -> str:
    return f"the ZIP file holds {count or 'no'} releases (directories with a datapackage.json)."


ZIP_ODD = "the ZIP file holds links, names that lead elsewhere, or two files of one name."
ZIP_LARGE = "the ZIP file would unpack to more than any release."
NOT_A_ZIP_HINT = "Ask for the file again, or unpack it yourself and open the directory."
DROP_ZIP = "Or drop a release as one ZIP file here"


def first_rows(shown: int, total: int) -> str:
    return f"The first {shown:,} of {total:,} rows; the CSV file has all."


def download_of(kind: str) -> str:
    return f"Download as {kind}"


def cell(count: float | None, low: float | None, high: float | None) -> str:
    """Return a count and its interval, as a cell of a cross table."""
    if count is None:
        return "-"
    if low is None or high is None or low == high == count:
        return f"{count:,.0f}"
    return f"{count:,.0f}  ({max(0.0, low):,.0f} to {high:,.0f})"
