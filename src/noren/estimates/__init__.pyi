"""The public names of `noren.estimates` and where each lives: for type checkers, and at run time."""

from noren.estimates.belief.posterior import Belief as Belief
from noren.estimates.belief.posterior import believed as believed
from noren.estimates.belief.posterior import closest_columns as closest_columns
from noren.estimates.counts.estimate import Count as Count
from noren.estimates.counts.estimate import Estimate as Estimate
from noren.estimates.counts.estimators import ESTIMATORS as ESTIMATORS
from noren.estimates.counts.estimators import SEMANTIC_ESTIMATORS as SEMANTIC_ESTIMATORS
from noren.estimates.counts.plots import BLUES as BLUES
from noren.estimates.counts.plots import INK as INK
from noren.estimates.counts.plots import PALETTE as PALETTE
from noren.estimates.counts.plots import RULE as RULE
from noren.estimates.counts.plots import SOFT as SOFT
from noren.estimates.counts.plots import rendered as rendered
from noren.estimates.counts.query import Members as Members
from noren.estimates.counts.tabulate import BOUNDED_ESTIMATORS as BOUNDED_ESTIMATORS
from noren.estimates.imputation import Imputations as Imputations
from noren.estimates.imputation import Pooled as Pooled
from noren.estimates.imputation import pool as pool
from noren.estimates.learn import CrossValidation as CrossValidation
from noren.estimates.learn import ReleaseClassifier as ReleaseClassifier
from noren.estimates.learn import ReleaseRegressor as ReleaseRegressor
from noren.estimates.statistics.records import numbers_of as numbers_of
from noren.estimates.statistics.regression import Regression as Regression
from noren.estimates.statistics.results import Statistic as Statistic
from noren.estimates.statistics.results import TestResult as TestResult
