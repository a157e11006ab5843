"""The public names of `noren.schema` and where each lives: for type checkers, and at run time."""

from noren.schema.column import Column as Column
from noren.schema.column import HierarchySpec as HierarchySpec
from noren.schema.hierarchy import SPANS as SPANS
from noren.schema.hierarchy import Hierarchy as Hierarchy
from noren.schema.hierarchy import HierarchyError as HierarchyError
from noren.schema.kinds import CALENDAR as CALENDAR
from noren.schema.kinds import NUMERIC as NUMERIC
