"""What a published cell says about the truth. The registry of forms is explicit: one line each."""

from __future__ import annotations

from noren.statements.batch import CellBatch, Cells, CodeCells, OpenCells, batch_length, concat, take
from noren.statements.changed import ChangedStatement
from noren.statements.design import Beliefs, Design
from noren.statements.exact import ExactStatement
from noren.statements.group import GroupStatement, GroupTable
from noren.statements.mean import MeanStatement
from noren.statements.member import MemberStatement
from noren.statements.node import NodeStatement
from noren.statements.open import OpenStatement
from noren.statements.set import SetStatement
from noren.statements.set_cells import SetCells
from noren.statements.statement import Judge, Likelihood, Statement
from noren.statements.term_cells import TermCells
from noren.statements.terms import TermsStatement

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
    "Beliefs",
    "CellBatch",
    "Cells",
    "ChangedStatement",
    "CodeCells",
    "Design",
    "ExactStatement",
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
