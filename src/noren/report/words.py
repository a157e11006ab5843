"""What every privacy model promises, in one sentence a lawyer understands, and what it does not promise.

The sentences speak about people and what can be learned about them. Where a model says different things about a column
that is published as sets of possible values and about records that look alike, so do the sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from noren.models.base import Form

Parameters = Mapping[str, Any]
Sentences = tuple[str, str]

CLASS = "Among the records that could be a person's"
TOGETHER = ("k-anonymity", "qs-diversity", "qs-closeness")
"""Models that take several columns together; the others speak about each on its own."""
KNOWS_SHARES = "It does not limit somebody who knows how common the values are, or who can rule some of them out."


def guarantee(model: str, columns: Sequence[str], parameters: Parameters, forms: Sequence[Form]) -> Sentences:
    """The promise of one requirement, and what it leaves open."""
    sets = bool(forms) and all(form in ("set", "member") for form in forms)
    names = ", ".join(columns[:-1]) + " and " + columns[-1] if len(columns) > 1 else "".join(columns)
    if len(columns) > 1 and model not in TOGETHER:
        names = f"each of {names}"
    if model not in SENTENCES:
        return f"{names} must satisfy {model}.", "No plain description of this model is at hand; read its definition."
    return SENTENCES[model](names, parameters, sets)


def _k_anonymity(names: str, given: Parameters, sets: bool) -> Sentences:
    by = names or "the columns that people can be found by"
    return (
        f"Whoever looks a person up by {by} finds at least {given['k']} published records that could be the person's.",
        "It says nothing about secrets: if all these records share one secret, it is learned without knowing which "
        "record is whose.",
    )


def _frequency(names: str, given: Parameters, sets: bool) -> Sentences:
    size = given["l"]
    if sets:
        return (
            f"For every person at least {size} values of {names} remain possible, so that somebody who thinks all "
            f"values equally likely believes none of them with more than 1/{size}.",
            "It limits what is ruled out, not what is believed: a common value that stands beside rare ones is the "
            "likely one for somebody who knows how common the values are.",
        )
    return f"{CLASS}, no value of {names} makes up more than 1/{size}.", KNOWS_SHARES


def _distinct(names: str, given: Parameters, sets: bool) -> Sentences:
    where = "For every person" if sets else CLASS
    return (
        f"{where}, at least {given['l']} different values of {names} remain possible.",
        "It counts values and not how often they occur: 99 of 100 records may share one secret. " + KNOWS_SHARES,
    )


def _entropy(names: str, given: Parameters, sets: bool) -> Sentences:
    where = "For every person the possible" if sets else f"{CLASS}, the"
    return (
        f"{where} values of {names} are as mixed as {given['l']:g} equally frequent ones.",
        "It is an average: one value may still be clearly more frequent than the others. " + KNOWS_SHARES,
    )


def _recursive(names: str, given: Parameters, sets: bool) -> Sentences:
    return (
        f"{CLASS}, the commonest value of {names} stays below {given['c']:g} times all values from rank {given['l']} "
        f"on together, also for somebody who can rule out {max(0, given['l'] - 2)} of the values.",
        KNOWS_SHARES,
    )


def _alpha_k(names: str, given: Parameters, sets: bool) -> Sentences:
    return (
        f"At least {given['k']} records could be a person's, and no value of {names} makes up more than "
        f"{given['alpha']:.4g} of them.",
        "All values have the same ceiling, however rare or delicate they are. " + KNOWS_SHARES,
    )


def _p_sensitive(names: str, given: Parameters, sets: bool) -> Sentences:
    return (
        f"At least {given['k']} records could be a person's, and they hold at least {given['p']} different values of "
        f"{names}.",
        "It counts values and not how often they occur: all but a few records may share one secret. " + KNOWS_SHARES,
    )


def _tau_l(names: str, given: Parameters, sets: bool) -> Sentences:
    return (
        f"{CLASS}, no value of {names} makes up more than {given['tau']:.4g}, no few values together make up nearly "
        f"all, and at least {given['l']} values remain possible.",
        KNOWS_SHARES,
    )


def _t_closeness(names: str, given: Parameters, sets: bool) -> Sentences:
    distance = {
        "equal": "",
        "ordered": " (moving belief to a neighbouring value counts for little)",
        "tree": " (moving belief to a related value counts for less)",
    }[given.get("distance", "equal")]
    seen = "a person's published set" if sets else "the records that could be a person's"
    return (
        f"Whoever knows the overall distribution of {names} and sees {seen} changes this belief by at most "
        f"{given['t']:.4g} of 1{distance}.",
        "The bound is for one column seen alone: several columns together may tell more. A value that is rare may "
        "still become many times as likely as before.",
    )


def _beta(names: str, given: Parameters, sets: bool) -> Sentences:
    return (
        f"Seeing the records that could be a person's makes no value of {names} more than "
        f"{1 + given['beta']:.4g} times as likely as it is in the whole release.",
        "It does not limit how much less likely a value becomes: that a person does not have a common value may be "
        "learned.",
    )


def _delta(names: str, given: Parameters, sets: bool) -> Sentences:
    return (
        f"Seeing the records that could be a person's makes no value of {names} more likely or less likely, by a "
        f"factor of {2.718281828459045 ** given['delta']:.4g} or more, than it is in the whole release.",
        "It compares with the release as a whole: what the whole release tells about everybody is not limited.",
    )


def _expanded_k(names: str, given: Parameters, sets: bool) -> Sentences:
    return (
        f"Written out with one row for each possible value, the release has at least {given['k']} rows for every "
        f"combination of the other columns with values of {names}.",
        "It counts rows, not people: one person may account for all of them. It is not k-anonymity.",
    )


def _semantic(names: str, given: Parameters, sets: bool) -> Sentences:
    return (
        f"For every person at least {given['l']} values of {names} remain possible that differ in meaning, any two by "
        f"a distance of {given['d']:g} or more.",
        "The distance is the one that the policy declares; other relations between values are not considered. "
        + KNOWS_SHARES,
    )


def _le(names: str, given: Parameters, sets: bool) -> Sentences:
    told = (
        f"For every person values of {names} from at least {given['l']} different branches of its hierarchy remain "
        "possible"
        if sets
        else f"{CLASS}, no branch of the hierarchy of {names} makes up more than 1/{given['l']}"
    )
    return (
        f"{told} (branches at depth {given['e']}).",
        "Values of two branches count as different however close in meaning they are. " + KNOWS_SHARES,
    )


def _qs_diversity(names: str, given: Parameters, sets: bool) -> Sentences:
    bound = given["c"] / (given["c"] + 1)
    return (
        f"Whoever finds the records that could be a person's and links their {names} to labels with the knowledge "
        f"table believes in no single label with more than {bound:.0%}.",
        "The belief may rise from nothing up to that bound. Somebody with another knowledge table is not limited.",
    )


def _qs_closeness(names: str, given: Parameters, sets: bool) -> Sentences:
    single = (
        "no set of labels becomes likelier" if given.get("distance") == "emd" else "no single label becomes likelier"
    )
    return (
        f"Whoever finds the records that could be a person's and links their {names} to labels with the knowledge "
        f"table ends close to what was believed before: {single} by more than {given['t']:.4g} of 1.",
        "A guess may still become a little better than before. Somebody with another knowledge table is not limited.",
    )


SENTENCES: dict[str, Callable[[str, Parameters, bool], Sentences]] = {
    "k-anonymity": _k_anonymity,
    "frequency-l-diversity": _frequency,
    "distinct-l-diversity": _distinct,
    "entropy-l-diversity": _entropy,
    "recursive-cl-diversity": _recursive,
    "alpha-k-anonymity": _alpha_k,
    "p-sensitive-k-anonymity": _p_sensitive,
    "tau-l-diversity": _tau_l,
    "t-closeness": _t_closeness,
    "beta-likeness": _beta,
    "delta-disclosure": _delta,
    "expanded-k": _expanded_k,
    "semantic-diversity": _semantic,
    "le-diversity": _le,
    "qs-diversity": _qs_diversity,
    "qs-closeness": _qs_closeness,
}
"""One entry per model of the registry."""

METHODS = {
    "decoys": "Each protected cell is published as a set of possible values, drawn at random around the true one.",
    "sweep": "Values are made more general, record by record, as far as the neighbours of each record demand.",
    "mondrian": "Records are divided into groups by recursive cuts, and each group gets values that cover its records.",
    "incognito": "Every column is published at one level of its hierarchy, the least lossy that suffices.",
    "hilbert": "Records that are alike, ordered along a curve through all columns, are grouped and published together.",
    "three-phase": "Records with equal values are published as they are where their secrets differ enough; the others "
    "are moved together.",
    "anatomy": "Secrets are published apart from the other columns, as groups of records with several secrets each.",
    "rating": "Each protected column is published as groups, and a second table tells what each group holds.",
    "suppress": "Values are made more general, and terms that would tell too much are left out.",
    "auto": "Several methods were tried, and what the best of them made is published.",
}
"""How a release is made, in one sentence per method."""

GROUNDS = {
    "the release alone": "Anybody can recompute it from the published files and need trust nobody.",
    "the published design": "It follows from the design that the release states; trust that it was drawn that way.",
    "an estimate from the release": "It rests on the stated design and on an estimate of how common the values are.",
    "the original": "It was computed with the original table; only the holder can repeat it.",
}
"""What a verdict rests on, and whom a reader must trust."""
