"""English texts of the auditor's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WHAT = {"release": "A release", "table": "A table made elsewhere"}
WHAT_WHY = {
    "release": "What Noren published: recompute every claim from its cells, then attack it as an adversary would.",
    "table": "What ARX, sdcMicro, a spreadsheet or anything else made: measure it, and judge it by a policy.",
}

# ---------------------------------------------------------------------- what the auditor has besides

BESIDES = "What you have besides"
BESIDES_WHY = "All of it may stay empty: then this is what any outsider can compute from the release alone."
FIELDS: Mapping[str, tuple[str, str]] = {
    "policy": ("Policy (policy.toml)", "Checks these requirements instead of those the release claims itself."),
    "original": ("Original table", "Compares with the truth. Everything that rests on it stays with the holder."),
    "signer": ("Public key of the signer (.pub)", "The release must be signed by the owner of this key."),
    "second": ("Second release of the same people", "What both tell together: the intersection attack."),
    "second_original": ("Original of the second release", "Who is in both is then known by key."),
}
TAKE_OPEN = "Take the table and policy that are open here"
TAKE_DEMO = "Take the demo's original and policy"
HOLDER_ONLY = "for the holder only"
HOLDER_SIDE = "These figures rest on the original. They belong on the holder's side of the curtain."
NEEDS_POLICY = "an original is read as its policy says, and no policy is named."
NEEDS_POLICY_HINT = "Name the policy that the release was made with, or leave the original out."

# ---------------------------------------------------------------------- verify

VERIFY = "Verify"
VERIFY_WHY = "Every requirement computed again from the published cells, by code that shares nothing with the method."
RUN_VERIFY = "Verify"
SIGNED_AS_ASKED = "Signed by the key that you named."
SHORT = "Classes that fall short, the largest first"
REFUSED = "Forged or damaged: do not use it"


def decided(holds: bool | None, count: int) -> str:
    if not count:
        return "Nothing is required, so nothing is promised."
    if holds is True:
        return "Every requirement holds."
    return "A requirement does not hold." if holds is False else "Nothing fails, and something cannot be decided."


# ---------------------------------------------------------------------- attacks

ATTACKS = "Attacks"
ATTACKS_WHY = "Each adversary knows what is stated and no more. What counts is the gain over knowing nothing."
KNOWS = "The adversary"
MEASURED = "Measured"
OPTIONS = "Options"
NONE_CHOSEN = "no attack is chosen."
NONE_CHOSEN_HINT = "Tick at least one."
RUN_ATTACKS = "Run the attacks"
ALL, NO = "All that apply", "None"
GAINS = "What adversaries gain, the most first"
GAIN_HEADS = (("Attack", "n-key"), "On", "Figure", "Before and after", ("After means", "n-soft"))
BEFORE, AFTER = "before", "after"
NOT_RUN = "Not run"
CLOSER = "Look closer at"
SEVERAL = "several, separated by commas"
PEOPLE = "people or rows"


def not_here(count: int) -> str:
    return f"{count} attacks have nothing to attack here" if count > 1 else "1 attack has nothing to attack here"


def bar(which: str, figure: str, share: float) -> str:
    return f"{figure}, {which}: {share:.1%}"


def chart_of(attack: str, target: Sequence[str]) -> str:
    return f"Chart of the {attack} attack on {', '.join(target)}; its figures are in the table below"


def set_to(what: str, value: object) -> str:
    return f"{what}: {value}" if value not in ("", None) else f"{what}: none"


# ---------------------------------------------------------------------- tables made elsewhere

TABLE = "The table"
TABLE_WHY = "Texts are compared as they stand, whatever notation the other tool uses: 20-39, [20, 40[, *."
TABLE_PLACE = "Path of a CSV, Parquet, Arrow or Excel file, or postgresql://..."
TABLE_EXAMPLE = "/data/adult_k5.csv"
MEANING = "What its columns are"
MEANING_WHY = "A policy says it all; without one, name the columns. With a policy its requirements are judged too."
TABLE_POLICY_WHY = "Says what the columns are and what must hold, instead of the two choices above."
QUASI = "Columns that others may know (quasi-identifiers)"
SENSITIVE = "Secret columns (sensitive)"
SUPPRESSED = "Mark of dropped records"
SUPPRESSED_WHY = "What stands in all quasi-identifiers of a record that the other tool dropped."
MEASURE = "Measure"
NAME_COLUMNS = "which columns find people and which are secret is not known."
NAME_COLUMNS_HINT = "Choose them, or name a policy."
ACHIEVES = "What the table achieves"
ACHIEVES_WHY = "Nothing was asked: for every model the strictest requirement that would still hold."
MEASURE_HEADS = ("Model", "Column", "Figure", ("Found", "n"), ("Safer is", "n-soft"), ("In words", "n-soft"))
MORE, LESS = "more", "less"
SKIPPED = "Models that say nothing here"
JUDGED = "Judged by the policy"
OF_ROWS = "People may have several rows here and nobody knows whose they are: figures about classes count rows."


def table_opened(name: str) -> str:
    return f"audit table {name}"


def measured(found: Mapping[str, Any]) -> str:
    left = f", {found['suppressed']:,} dropped records apart" if found["suppressed"] else ""
    by = ", ".join(found["quasi_identifiers"]) or "nothing"
    return f"{found['records']:,} records{left}; people are found by {by}."
