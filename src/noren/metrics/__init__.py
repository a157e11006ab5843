"""What was lost, and how strong requirements are. Public functions are loaded when first used.

A name that ends in `_loss` is better when small, one that ends in `_score` when large.
"""

from noren.lazy import lazy

_HOMES = {
    # estimates against the truth
    "METRICS": "noren.metrics.distances",
    "Loss": "noren.metrics.distances",
    "hellinger_loss": "noren.metrics.distances",
    "l1_loss": "noren.metrics.distances",
    "l2_loss": "noren.metrics.distances",
    "measure": "noren.metrics.distances",
    "mse_loss": "noren.metrics.distances",
    # a plan beside its records
    "GeneralColumn": "noren.metrics.general",
    "GeneralTable": "noren.metrics.general",
    "view_of": "noren.metrics.general",
    "GENERAL_METRICS": "noren.metrics.losses",
    "average_class_size_loss": "noren.metrics.losses",
    "discernibility_loss": "noren.metrics.losses",
    "granularity_score": "noren.metrics.losses",
    "ncp_loss": "noren.metrics.losses",
    "non_uniform_entropy_loss": "noren.metrics.losses",
    "normalised_class_size_loss": "noren.metrics.losses",
    "Utility": "noren.metrics.information",
    "column_information": "noren.metrics.information",
    "excess_of_classes": "noren.metrics.information",
    "excessive_protection": "noren.metrics.information",
    "information_score": "noren.metrics.information",
    "quasi_utility_score": "noren.metrics.information",
    "sensitive_utility_score": "noren.metrics.information",
    "utility_score": "noren.metrics.information",
    "utility_scores": "noren.metrics.information",
    # count queries
    "DrawnColumn": "noren.metrics.queries",
    "Workload": "noren.metrics.queries",
    "WorkloadError": "noren.metrics.queries",
    "estimated_counts": "noren.metrics.queries",
    "query_error": "noren.metrics.queries",
    "random_workload": "noren.metrics.queries",
    "true_counts": "noren.metrics.queries",
    "workload_error": "noren.metrics.queries",
    # learning
    "PreservedRules": "noren.metrics.classification",
    "TreeAccuracy": "noren.metrics.classification",
    "preserved_rules": "noren.metrics.classification",
    "tree_accuracy": "noren.metrics.classification",
    # terms
    "term_loss": "noren.metrics.term_losses",
    "BeliefChange": "noren.metrics.term_losses",
    "TermLoss": "noren.metrics.term_losses",
    "TermWorkload": "noren.metrics.term_losses",
    "belief_change": "noren.metrics.term_losses",
    "estimated_term_counts": "noren.metrics.term_losses",
    "joint_terms": "noren.metrics.term_losses",
    "term_query_error": "noren.metrics.term_losses",
    "term_workload": "noren.metrics.term_losses",
    "true_term_counts": "noren.metrics.term_losses",
    # how strong a requirement is
    "Eligibility": "noren.metrics.strength",
    "EligibleRanges": "noren.metrics.strength",
    "RecursiveBound": "noren.metrics.strength",
    "eligibility": "noren.metrics.strength",
    "eligible_ranges": "noren.metrics.strength",
    "envelope": "noren.metrics.strength",
    "largest_c": "noren.metrics.strength",
    "strength_table": "noren.metrics.strength",
    "weakest_simple": "noren.metrics.strength",
    "ViolationRate": "noren.metrics.violation",
    "exact_rate": "noren.metrics.violation",
    "theorem_bound": "noren.metrics.violation",
    "violation_of_table": "noren.metrics.violation",
    "violation_rate": "noren.metrics.violation",
}

__getattr__, __dir__, __all__ = lazy(__name__, _HOMES)
