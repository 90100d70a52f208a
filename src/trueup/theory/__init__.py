"""The theorems of the paper as functions: when, and by how much, the second step improves the first.

Notation: X are the aggregates of a first step, one per question; `SS = sum_j (X_j - Xbar)^2`; psi estimates the
variance of an aggregate; the empirical Bayes estimate is `Xbar + (1 - (m-3) psi / SS)(X_j - Xbar)` for m > 3
questions. Risks are expected **sums** of squared errors over questions. Every argument about noise is a
**variance**, never a standard deviation.

Modules: `bayes` (a known prior, and where m - 3 comes from), `blue` (known workers), `spread` (the mean of
1/SS), `known_variance` (exact risks for a constant psi, right or wrong), `condition` (the general condition and
alpha*, measured on repeated samples or on resampled workers), `normal_model` (the risk when psi depends on X),
`corollaries` and `accuracy` (which psi help), `limits` (many questions), `gain` (a diagnostic for one data set).
Each function states its formula, its assumptions, and the statement it comes from. Printed statements that are wrong or
weaker than necessary are marked, next to the correct ones.

Reference: T. Ben Shabat, R. Meir and D. Azriel, Empirical Bayes approach to Truth Discovery problems, arXiv
2206.04816.
"""

from trueup.theory.accuracy import (
    COUNTEREXAMPLE,
    TwoPoint,
    mostly_within_epsilon,
    within_epsilon,
    worst_psi,
)
from trueup.theory.bayes import (
    BayesPosterior,
    MarginalIdentity,
    bayes_estimate,
    bayes_risk,
    marginal_identity,
)
from trueup.theory.blue import blue_risk, blue_variance, blue_weights, linear_variance
from trueup.theory.condition import Condition, condition_from_bootstrap, general_condition
from trueup.theory.corollaries import (
    constant_psi,
    guessed_variances,
    independent_psi,
    largest_scale,
    mean_adjusted_psi,
    spread_psi,
)
from trueup.theory.gain import Gain, gain_by_psi_alone, gain_estimate
from trueup.theory.known_variance import (
    biased_variance_risk,
    casella_bound,
    ebblue_risk,
    risk_given_truth,
    risk_under_prior,
)
from trueup.theory.limits import Moments, shrinkage_limit, shrinkage_moments
from trueup.theory.normal_model import (
    ConstantPsi,
    SpreadPsi,
    known_variance_risk,
    normal_risk,
    numerical_slope,
    slope,
    unbiased_risk,
)
from trueup.theory.results import Measured, Verdict
from trueup.theory.spread import Bounds, inverse_ss, inverse_ss_bounds, inverse_ss_under_prior

__all__ = [
    "COUNTEREXAMPLE",
    "BayesPosterior",
    "Bounds",
    "Condition",
    "ConstantPsi",
    "Gain",
    "MarginalIdentity",
    "Measured",
    "Moments",
    "SpreadPsi",
    "TwoPoint",
    "Verdict",
    "bayes_estimate",
    "bayes_risk",
    "biased_variance_risk",
    "blue_risk",
    "blue_variance",
    "blue_weights",
    "casella_bound",
    "condition_from_bootstrap",
    "constant_psi",
    "ebblue_risk",
    "gain_by_psi_alone",
    "gain_estimate",
    "general_condition",
    "guessed_variances",
    "independent_psi",
    "inverse_ss",
    "inverse_ss_bounds",
    "inverse_ss_under_prior",
    "known_variance_risk",
    "largest_scale",
    "linear_variance",
    "marginal_identity",
    "mean_adjusted_psi",
    "mostly_within_epsilon",
    "normal_risk",
    "numerical_slope",
    "risk_given_truth",
    "risk_under_prior",
    "shrinkage_limit",
    "shrinkage_moments",
    "slope",
    "spread_psi",
    "unbiased_risk",
    "within_epsilon",
    "worst_psi",
]
