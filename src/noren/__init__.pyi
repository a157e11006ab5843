"""The public names of `noren` and where each lives: for type checkers, and at run time."""

from noren import audit as audit
from noren import designs as designs
from noren import errors as errors
from noren import estimates as estimates
from noren import methods as methods
from noren import metrics as metrics
from noren import models as models
from noren import report as report
from noren import workflow as workflow
from noren.audit import Attacks as Attacks
from noren.audit import attack as attack
from noren.audit.risk import risk as risk
from noren.errors import NorenError as NorenError
from noren.estimates.counts.estimate import Count as Count
from noren.estimates.counts.estimate import Estimate as Estimate
from noren.models.verdict import Verdicts as Verdicts
from noren.policy.policy import Policy as Policy
from noren.release.release import Release as Release
from noren.release.release import open_release as open_release
from noren.report.page import make_report as make_report
from noren.schema.column import Column as Column
from noren.schema.column import drop as drop
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
from noren.workflow.anonymize import anonymize as anonymize
from noren.workflow.collect import Collector as Collector
from noren.workflow.compare import compare as compare
from noren.workflow.comparison import Comparison as Comparison
from noren.workflow.fix import fix as fix
from noren.workflow.foreign import check as check
from noren.workflow.measure import Measures as Measures
from noren.workflow.measure import measure as measure
from noren.workflow.verify import verify as verify

__version__: str
