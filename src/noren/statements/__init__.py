"""Statements: what a published cell means about the true value. One line per form of cell."""

from __future__ import annotations

from noren.statements.batch import CellBatch, Cells, CodeCells, OpenCells, batch_length, concat, take
from noren.statements.design import Design
from noren.statements.exact import ExactStatement, OpenStatement
from noren.statements.group import GroupStatement, GroupTable
from noren.statements.mean import MeanStatement
from noren.statements.node import NodeStatement
from noren.statements.set import ChangedStatement, FoundSets, MemberStatement, SetStatement
from noren.statements.set_cells import SetCells
from noren.statements.statement import Judge, Likelihood, Statement
from noren.statements.terms import TermCells, TermsStatement

FORMS: dict[str, type[Statement]] = {
    "exact": ExactStatement,
    "open": OpenStatement,
    "set": SetStatement,
    "member": MemberStatement,
    "changed": ChangedStatement,
    "node": NodeStatement,
    "group": GroupStatement,
    "mean": MeanStatement,
    "terms": TermsStatement,
}

__all__ = [
    "FORMS",
    "CellBatch",
    "Cells",
    "ChangedStatement",
    "CodeCells",
    "Design",
    "ExactStatement",
    "FoundSets",
    "GroupStatement",
    "GroupTable",
    "Judge",
    "Likelihood",
    "MeanStatement",
    "MemberStatement",
    "NodeStatement",
    "OpenCells",
    "OpenStatement",
    "SetCells",
    "SetStatement",
    "Statement",
    "TermCells",
    "TermsStatement",
    "batch_length",
    "concat",
    "take",
]
