"""The names of `noren.analysis`, for type checkers: at run time they are loaded when first used."""

from noren.analysis.members import Members as Members
from noren.analysis.plots import BLUES as BLUES
from noren.analysis.plots import INK as INK
from noren.analysis.plots import PALETTE as PALETTE
from noren.analysis.plots import RULE as RULE
from noren.analysis.plots import SOFT as SOFT
from noren.analysis.plots import rendered as rendered
from noren.analysis.tabulate import BOUNDED_ESTIMATORS as BOUNDED_ESTIMATORS
from noren.analysis.tabulate import ESTIMATORS as ESTIMATORS
from noren.analysis.tabulate import SEMANTIC_ESTIMATORS as SEMANTIC_ESTIMATORS
