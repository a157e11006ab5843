"""What methods and engines share: the original as an engine holds it, and what a method decides to publish of it."""

from __future__ import annotations

from noren.table.engine import CodeBatch, Engine, Reading
from noren.table.plan import Average, Change, Draw, Drop, Group, Omit, Pass, Plan, Recode, TermSearch, Treatment
from noren.table.profile import Profile, ValueCounts
from noren.table.records import RandomOrder, Records, TermRecords
from noren.table.table import Table

__all__ = [
    "Average",
    "Change",
    "CodeBatch",
    "Draw",
    "Drop",
    "Engine",
    "Group",
    "Omit",
    "Pass",
    "Plan",
    "Profile",
    "RandomOrder",
    "Reading",
    "Recode",
    "Records",
    "Table",
    "TermRecords",
    "TermSearch",
    "Treatment",
    "ValueCounts",
]
