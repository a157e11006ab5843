"""What is not protected: by the method, and by what the policy leaves open. The page must say it, asked or not."""

from __future__ import annotations

from noren.models.base import QUASI, columns_of
from noren.report.material import Material


def limits_of(material: Material) -> list[dict[str, str]]:
    """Sentences with the part of the release that each is about."""
    items = [*_by_policy(material), *_by_method(material), *_always(material)]
    return [{"about": about, "text": text} for about, text in items] + [
        {"about": "this run", "text": note} for note in material.notes
    ]


def _by_policy(material: Material) -> list[tuple[str, str]]:
    statements = material.release.statements
    plain = [statement.name for statement in statements if statement.is_exact]
    hidden = "the truth inside the sets" if material.release.designs else "which of the class's secrets is the person's"
    out = [
        (
            "plain columns",
            f"Columns published as they are: {', '.join(plain) or 'none'}. Whoever knows them can find a person's row; "
            f"what is hidden is {hidden}.",
        )
    ]
    free = [statement.name for statement in statements if statement.column.is_open]
    if free:
        out.append(
            (
                "open columns",
                f"Columns with no fixed list of values: {', '.join(free)}. A cell of theirs may itself name or "
                "describe a person; nobody has read them.",
            )
        )
    together = any(not model.on for model in material.requirements)
    named = columns_of(material.requirements)
    outside = [
        statement.name
        for statement in statements
        if statement.name not in named
        and not (together and statement.role in QUASI)
        and not (statement.hides and statement.design is None)
    ]
    if outside:
        out.append(
            (
                "columns outside the requirements",
                f"No requirement speaks about {', '.join(outside)}: nothing is promised for these columns, and if one "
                "of them goes with a secret, it tells something about the secret.",
            )
        )
    return out


def _by_method(material: Material) -> list[tuple[str, str]]:
    release = material.release
    out = []
    if release.designs:
        out += [
            (
                "several columns",
                "What several columns' sets tell together, where the columns are correlated. A bound that holds for "
                "each column alone adds up over columns.",
            ),
            _repeated_sets(release.manifest.randomness == "memoised"),
        ]
        if any(design.p == 1.0 for design in release.designs.values()):
            out.append(
                (
                    "prior knowledge",
                    "What somebody believes who knows how common the values are: inside a set the odds stay as they "
                    "were before.",
                )
            )
    tells = [f"{name}: {design.tells}" for name, design in release.designs.items() if design.tells]
    if tells:
        out.append(("published parameters", f"{'; '.join(tells)}."))
    if material.has_classes:
        out.append(("repeated releases", "People who are in two releases: their classes can be intersected."))
        if material.release.manifest.mechanism == "ignored":
            said = 'The policy ignores it (mechanism = "ignored"): up to somebody\'s secret.'
            out.append(("the method", f"What an adversary infers from knowing the method itself. {said}"))
    if any(statement.terms is not None for statement in release.statements):
        out.append(
            (
                "other knowledge",
                "Terms as an adversary would link them with another knowledge table than the one the policy gives: "
                "what that table does not know, nobody here has counted.",
            )
        )
    return out


def _repeated_sets(memoised: bool) -> tuple[str, str]:
    if memoised:
        return (
            "repeated releases",
            "People who are also in releases made with another secret, or by somebody else: those sets can be "
            "intersected with these.",
        )
    return ("repeated releases", "People who are in two releases with fresh decoys: the sets can be intersected.")


def _always(material: Material) -> list[tuple[str, str]]:
    return [
        ("membership", "Whether a person is in the table at all."),
        (
            "facts about the population",
            "What is true of many people, such as an illness that goes with an occupation: that is what recipients are "
            "meant to learn, and it tells something about everybody, in the table or not.",
        ),
        (
            "other sources",
            "What an adversary knows from elsewhere about one person, beyond what each requirement assumes.",
        ),
    ]
