"""The names of `noren`, for type checkers: at run time they are loaded when first used."""

from noren import audit as audit
from noren import designs as designs
from noren import errors as errors
from noren import imputation as imputation
from noren import inference as inference
from noren import learn as learn
from noren import methods as methods
from noren import metrics as metrics
from noren import models as models
from noren import pipeline as pipeline
from noren import report as report
from noren.analysis.estimate import Count as Count
from noren.analysis.estimate import Estimate as Estimate
from noren.audit import Attacks as Attacks
from noren.audit import attack as attack
from noren.errors import NorenError as NorenError
from noren.models.verdict import Verdicts as Verdicts
from noren.pipeline.anonymize import anonymize as anonymize
from noren.pipeline.collect import Collector as Collector
from noren.pipeline.compare import compare as compare
from noren.pipeline.comparison import Comparison as Comparison
from noren.pipeline.foreign import check as check
from noren.pipeline.measure import Measures as Measures
from noren.pipeline.measure import measure as measure
from noren.pipeline.risk import risk as risk
from noren.pipeline.verify import verify as verify
from noren.policy.policy import Policy as Policy
from noren.release.release import Release as Release
from noren.release.release import open_release as open_release
from noren.report.page import make_report as make_report
from noren.schema.column import Column as Column
from noren.schema.column import identifier as identifier
from noren.schema.column import plain as plain
from noren.schema.column import quasi_identifier as quasi_identifier
from noren.schema.column import quasi_sensitive as quasi_sensitive
from noren.schema.column import sensitive as sensitive
from noren.schema.column import sensitive_quasi_identifier as sensitive_quasi_identifier
from noren.schema.hierarchy import Hierarchy as Hierarchy
from noren.schema.knowledge import Knowledge as Knowledge
from noren.secret import PublicKey as PublicKey
from noren.secret import Secret as Secret
from noren.secret import SigningKey as SigningKey

__version__: str
