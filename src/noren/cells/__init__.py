"""What a published cell says about the truth. The registry of forms is explicit: one line each."""

from __future__ import annotations

from noren.cells.batch import CellBatch, Cells, CodeCells, OpenCells, batch_length, concat, take
from noren.cells.changed import ChangedStatement
from noren.cells.design import Beliefs, Design
from noren.cells.exact import ExactStatement
from noren.cells.group import GroupStatement, GroupTable
from noren.cells.mean import MeanStatement
from noren.cells.member import MemberStatement
from noren.cells.node import NodeStatement
from noren.cells.open import OpenStatement
from noren.cells.set import SetStatement
from noren.cells.set_cells import SetCells
from noren.cells.statement import Judge, Likelihood, Statement
from noren.cells.term_cells import TermCells
from noren.cells.terms import TermsStatement

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
