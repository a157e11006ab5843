"""Commands about outside knowledge: build a knowledge table, check a declared distance."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from noren.cli.render import PLACE, echo_json, say
from noren.errors import DataError, suggest_columns


@click.group(epilog="Example: noren knowledge build pairs.csv --count patients --to knowledge.csv")
def knowledge() -> None:
    """Build a knowledge table, or check a declared distance; both take --json."""


@knowledge.command(epilog="Example: noren knowledge build pairs.csv --count patients --to knowledge.csv")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--to", "target", required=True, type=click.Path(path_type=Path), help="The table to write, a CSV.")
@click.option("--label", help="Column of labels.")
@click.option("--term", help="Column of terms.")
@click.option("--count", help="Column with the number of cases of the label that have the term.")
@click.option(
    "--share", help="Column with the share of cases that have the term (0.15, 15%, 3/20, or a frequency term of HPO)."
)
@click.option("--total", help="Column with the frequency of the label.")
@click.option(
    "--ontology",
    type=click.Path(path_type=Path),
    help="Ontology with the names of terms: .obo, .owl, or a CSV of code,name,parent.",
)
@click.option("--ancestors", is_flag=True, help="Add to every case all ancestors of its terms.")
@click.option(
    "--labels", type=click.Path(path_type=Path), help="The names of labels, if SOURCE is a collection of documents."
)
@click.option(
    "--terms", type=click.Path(path_type=Path), help="The names of terms, if SOURCE is a collection of documents."
)
@click.option("--by", type=click.Choice(["count", "pmi"]), default="count", show_default=True, help="Pairs to keep.")
@click.option(
    "--least",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Smallest number of documents in which a pair must occur.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the sizes as JSON.")
def build(
    source: Path,
    target: Path,
    labels: Path | None,
    terms: Path | None,
    by: Literal["count", "pmi"],
    least: int,
    as_json: bool,
    **columns: Any,
) -> None:
    """Build the table of labels and terms that a quasi-sensitive column needs.

    SOURCE is a file of pairs (annotations of an ontology such as phenotype.hpoa, a table of codes, a list with counts),
    or documents: a folder of .txt files, or a file with one a line.
    """
    from noren.schema.knowledge_sources import knowledge_from_documents, knowledge_from_pairs

    if (labels is None) != (terms is None) or (labels is not None and any(columns.values())):
        raise click.UsageError("Documents need --labels and --terms, and take none of the options for columns.")
    if columns["ancestors"] and columns["ontology"] is None:
        raise click.UsageError("--ancestors needs an --ontology.")
    if labels is not None and terms is not None:
        built = knowledge_from_documents(source, labels, terms, by=by, least=least)
    else:
        built = knowledge_from_pairs(source, **columns)
    built.write(target)
    found = built.knowledge
    size = {"labels": len(found.labels), "terms": len(found.terms), "pairs": len(found.codes)}
    if as_json:
        echo_json({**size, "notes": list(built.notes), "written": str(target)})
        return
    for note in built.notes:
        say(f"Note: {note}", err=True)
    say(f"Written: {target}, {size['labels']:,} labels, {size['terms']:,} terms, {size['pairs']:,} pairs")
    say("A pair that is not in the table counts as impossible, so an incomplete table protects too little.")


@knowledge.command(epilog="Example: noren knowledge distance patients.csv policy.toml --column disease --d 2")
@click.argument("data", type=PLACE)
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--column", required=True, help="The column whose distance is checked.")
@click.option("--d", "least", required=True, type=float, help="The distance d that a requirement demands.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def distance(data: str, policy: Path, column: str, least: float, as_json: bool) -> None:
    """Say whether a declared distance is a metric, agrees with the hierarchy, and how many pairs lie below d."""
    from noren.policy.resolve import declared_distance
    from noren.schema.distance import judge_distance
    from noren.schema.roles import Role
    from noren.workflow.prepare import prepare, read_policy

    rules = read_policy(policy)
    if column not in rules.attributes:
        raise DataError(f"the policy has no column {column!r}.", hint=suggest_columns([column], list(rules.attributes)))
    found = prepare(data, rules).columns[column]
    if found.is_open or found.role is Role.QUASI_SENSITIVE:
        raise DataError(f"{column!r} has no distance.", hint="Choose a column with values or bins.")
    tree = rules.hierarchies.get(column)
    far = declared_distance(rules, column, found.domain)
    judged = judge_distance(far, None if tree is None else tree.restrict_to(found.domain.values), least)
    if as_json:
        echo_json({"column": column, "d": least, **judged._asdict()})
        return
    for line in judged.sentences(least):
        say(line)
