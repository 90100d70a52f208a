"""The names under which engines keep vectors over the questions, all in one place.

A visit writes vectors (`Visit(questions={vectors.AGGREGATE: ...})`), and a later one asks for them
(`sweep(visit, reads=(vectors.AGGREGATE,))`). Unless a comment says otherwise numbers are on the scale on which answers
are combined, and variances in its square. A mark is 1 for yes and 0 for no.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine, Kept

# -- input: what the caller knows of the questions ---------------------------------------------------------------------

#: Number of the group of each question, -1 for none. Written where the answers are read; read by the second step.
GROUP = "group"
#: Start of the name of a covariate, see `covariate`. In the caller's units; written and read like groups.
COVARIATE = "covariate-"
#: Known truth in the units of the answers, NaN where unknown. Written where the answers are read; read by
#: `pipeline.scaling`.
GOLD = "gold"
#: Known truth on the scale. Written by `pipeline.scaling`; read by `pipeline.solve`.
SCALED_GOLD = "scaled_gold"
#: What the crowd is expected to say of a question with a known truth. Written by `pipeline.solve`; read by
#: `pipeline.calibration` to add a worker who says so.
EXPECTED = "expected"
#: A random number in [0, 2^64) that follows from id and seed. Written by `Engine.draw`; read by `QuestionSample`.
DRAW = "draw"

# -- first step: aggregation -------------------------------------------------------------------------------------------

#: Truth in the current iteration, relative to the centre of its question. Written and read by `algorithms.driver`.
ITERATE = "x"
#: The aggregate relative to the centre of its question. Written by `algorithms.driver`; read by the variance rules.
OFFSET = "truth"
#: The aggregate, the result of the first step. Written by `algorithms.driver`; read by the pipeline.
AGGREGATE = "base"
#: Variance of the aggregate by the model of the algorithm itself, NaN where it has none. Written by
#: `algorithms.driver`; read by `variance.plugin` and the pipeline.
MODEL_VARIANCE = "variance"
#: Truth and variance in each version of the native first step, in units of the spread of the panel and relative to the
#: median of the question. Written and read by `algorithms.native` alone.
MEAN_TRUTH, NORMAL_TRUTH, HEAVY_TRUTH = "mean_truth", "normal_truth", "heavy_truth"
MEAN_VARIANCE, NORMAL_VARIANCE, HEAVY_VARIANCE = "mean_v", "normal_v", "heavy_v"
#: Mark: the variance of the answers is far above that of other questions. Written by `algorithms.screening`; read by
#: the variance rules and `pipeline.split_halves`, to set the question aside.
GROSS = "gross"
#: Mark: a single answer makes a gross question gross. Written and read like `GROSS`.
ABSURD = "absurd"
#: Lowest and highest answer of an absurd question without the farthest one, NaN for other questions. Written like
#: `ABSURD`; read by `pipeline.shrink`: the question moves no further than its own other answers.
OTHERS_LOWEST, OTHERS_HIGHEST = "others_lowest", "others_highest"
#: Variance of the answers around their mean. Written and read by `algorithms.screening` alone.
SCREENED_VARIANCE = "within"
#: Mean of the answers, relative to the centre of the question. Written and read by `findings.agreement`.
ANSWER_MEAN = "answer_mean"
#: Sum of squares of the answers around their mean. Written and read by `findings.agreement`.
SQUARES_WITHIN = "ss"
#: Number of answers before correlated workers were pooled. Written by `pipeline.pooling`; read by result tables.
ANSWERED = "answered"

# -- variance of the aggregate -----------------------------------------------------------------------------------------

#: Variance of the aggregate, NaN where unknown. Written by every variance rule; read by the second step.
VARIANCE = "v"
#: The same for intervals: the larger of two estimates where they differ. Written by the rules that have one; read by
#: the second step.
INTERVAL_VARIANCE = "v_interval"
#: Sums over the answers of a question, with squared weights: of 1, of the moderated and of the careful variance of its
#: worker, and of its squared residual. Written and read by `variance.moderated` alone.
WEIGHT_SQUARES, MODERATED_SUM, CAREFUL_SUM, RESIDUAL_SUM = "own", "pattern", "careful", "single"
#: Median of the answers, relative to the centre of the question. Written by `algorithms.answer_spread`; read by
#: `algorithms.native` and `variance.robust`.
MEDIAN = "median"
#: Sandwich variance, NaN for a single answer. Written by `variance.sandwich`, which returns it.
SANDWICH = "sandwich"
#: What the uncertain biases of the workers add to the variance. Written by `variance.moderated`; read by
#: `pipeline.shrink`.
BIAS_VARIANCE = "extra"

# -- second step: shrinkage, written by `pipeline.shrink` and read by `pipeline.solve` ---------------------------------

#: Posterior mean.
POSTERIOR_MEAN = "mean"
#: Posterior variance, NaN where the rule gives point estimates only.
POSTERIOR_VARIANCE = "post_variance"
#: `INTERVAL_VARIANCE`, or `VARIANCE` where there is none, plus `BIAS_VARIANCE`.
AGGREGATE_VARIANCE = "base_variance"
#: Share of the way from the aggregate to its target, between 0 and 1 as a rule.
SHRINKAGE = "shrinkage"
#: Mark: the variance of the aggregate is unknown, so that the question was not moved.
UNKNOWN = "unknown"

# -- result: in the units of the answers, written at the end of `pipeline.solve` and read by all result tables ---------

#: The estimate, and the ends of its interval (NaN where unknown).
ESTIMATE, LOWER, UPPER = "estimate", "lower", "upper"
#: Ends of the interval for the truth, NaN where unknown.
TRUTH_LOWER, TRUTH_UPPER = "truth_lower", "truth_upper"
#: Standard error of the estimate, NaN where unknown.
STD_ERROR = "std_error"
#: The aggregate and its standard error.
FIRST, FIRST_STD_ERROR = "first", "first_std_error"
#: `SHRINKAGE`, 0 for questions with a known truth.
MOVED = "moved"


def covariate(number: int) -> str:
    """Return the name of a covariate, counted from 0."""
    return f"{COVARIATE}{number}"


@dataclass(frozen=True)
class QuestionVectors:
    """Which groups and covariates an engine keeps.

    Attributes
    ----------
    groups : bool
        Whether it keeps `GROUP`.
    covariates : int
        How many covariates it keeps, as `covariate(0)`, `covariate(1)`, ...
    """

    groups: bool = False
    covariates: int = 0

    @classmethod
    def keep(
        cls, engine: Engine, groups: Ints | None, covariates: Floats | None
    ) -> QuestionVectors:
        """Let the engine keep groups and covariates, besides those that it keeps already."""
        held = engine.question_vectors
        if groups is not None:
            engine.keep(GROUP, groups.astype(np.float64))
            held = replace(held, groups=True)
        if covariates is not None:
            for number, column in enumerate(np.asarray(covariates, dtype=np.float64).T):
                engine.keep(covariate(number), column)
            held = replace(held, covariates=covariates.shape[1])
        return held

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the vectors."""
        columns = tuple(map(covariate, range(self.covariates)))
        return (*columns, GROUP) if self.groups else columns

    def arguments(self, kept: Kept) -> dict[str, Any]:
        """Return the keywords for a shrink rule."""
        columns = [kept[covariate(number)] for number in range(self.covariates)]
        return {
            "groups": kept[GROUP].astype(np.int64) if self.groups else None,
            "covariates": np.column_stack(columns) if columns else None,
        }
