"""English texts of the auditor's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WHAT = {"release": "A release", "table": "A table made elsewhere"}
WHAT_WHY = {
    "release": "A release by Noren: recompute every claim from its cells, then attack it.",
    "table": "A table by ARX, sdcMicro, a spreadsheet or another tool: measure it, and check it against a policy.",
}

# ---------------------------------------------------------------------- what the auditor has besides

BESIDES = "What you have besides"
BESIDES_WHY = "You can leave all of this empty. The attacks then use only the release, like any outsider."
FIELDS: Mapping[str, tuple[str, str]] = {
    "policy": ("Policy (policy.toml)", "Checks these requirements instead of those that the release claims."),
    "original": ("Original table", "Compares with the true values. The results are for the holder only."),
    "signer": ("Public key of the signer (.pub)", "The release must be signed by the owner of this key."),
    "second": ("Second release of the same people", "Runs the intersection attack on both releases."),
    "second_original": ("Original of the second release", "The attack then matches people in both releases by key."),
}
TAKE_OPEN = "Take the table and policy that are open here"
TAKE_DEMO = "Take the demo's original and policy"
HOLDER_ONLY = "for the holder only"
HOLDER_SIDE = "These figures rest on the original. Do not publish them."
NEEDS_POLICY = "the original cannot be read without its policy."
NEEDS_POLICY_HINT = "Give the policy that the release was made with, or remove the original."

# ---------------------------------------------------------------------- verify

VERIFY = "Verify"
VERIFY_WHY = "Every requirement computed again from the published cells, by code that is independent of the method."
RUN_VERIFY = "Verify"
SIGNED_AS_ASKED = "Signed by the key that you gave."
SHORT = "Classes that break a requirement, largest first"
REFUSED = "Forged or damaged: do not use it"


def decided(holds: bool | None, count: int) -> str:
    if not count:
        return "The release has no requirement, so it guarantees nothing."
    if holds is True:
        return "Every requirement holds."
    return "A requirement does not hold." if holds is False else "No requirement fails, but at least one is undecided."


# ---------------------------------------------------------------------- attacks

ATTACKS = "Attacks"
ATTACKS_WHY = "Each adversary has only the stated knowledge. Compare the figure with the one before the release."
KNOWS = "The adversary"
MEASURED = "Measured"
OPTIONS = "Options"
NONE_CHOSEN = "no attack is chosen."
NONE_CHOSEN_HINT = "Tick at least one."
RUN_ATTACKS = "Run the attacks"
ALL, NO = "All that apply", "None"
GAINS = "What adversaries learn, largest gain first"
NOT_RUN = "Not run"
CLOSER = "Look closer at"
SEVERAL = "several, separated by commas"
PEOPLE = "people or rows"


def not_here(count: int) -> str:
    return f"{count} attacks do not apply here" if count > 1 else "1 attack does not apply here"


def run_of(run: int, of: int) -> str:
    return f"{run} of {of} attacks have been run, beginning with the adversaries who need the least knowledge."


def chart_of(attack: str, target: Sequence[str]) -> str:
    return f"Chart of the {attack} attack on {', '.join(target)}; its figures are in the table below"


# ---------------------------------------------------------------------- tables made elsewhere

TABLE = "The table"
TABLE_WHY = "Texts are compared unchanged, in any notation: 20-39, [20, 40[, *."
TABLE_PLACE = "Path of a CSV, Parquet, Arrow or Excel file, or postgresql://..."
TABLE_EXAMPLE = "/data/adult_k5.csv"
MEANING = "What its columns are"
MEANING_WHY = "Give a policy, or choose the columns. With a policy, its requirements are checked too."
TABLE_POLICY_WHY = "Defines the columns and the requirements, instead of the two choices above."
QUASI = "Columns that others may know (quasi-identifiers)"
SENSITIVE = "Secret columns (sensitive)"
SUPPRESSED = "Mark of dropped records"
SUPPRESSED_WHY = "The text that the other tool writes into all quasi-identifiers of a suppressed record."
MEASURE = "Measure"
NAME_COLUMNS = "quasi-identifiers and sensitive columns are not known."
NAME_COLUMNS_HINT = "Choose them, or name a policy."
ACHIEVES = "What the table achieves"
ACHIEVES_WHY = "For every model, the strictest requirement that the table meets."
MEASURE_HEADS = ("Model", "Column", "Figure", ("Found", "n"), ("Safer is", "n-soft"), ("In words", "n-soft"))
MORE, LESS = "more", "less"
SKIPPED = "Models that do not apply to this table"
JUDGED = "Judged by the policy"
OF_ROWS = "The table does not show which rows belong to one person, so figures about classes count rows."


def table_opened(name: str) -> str:
    return f"audit table {name}"


def measured(found: Mapping[str, Any]) -> str:
    left = f", {found['suppressed']:,} dropped records apart" if found["suppressed"] else ""
    by = ", ".join(found["quasi_identifiers"]) or "nothing"
    return f"{found['records']:,} records{left}; people are found by {by}."
