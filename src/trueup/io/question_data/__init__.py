"""What the caller knows about the questions: groups, covariates and gold truths, read in any form for every engine."""

from trueup.io.question_data.data import Covariates, Labels, QuestionData
from trueup.io.question_data.request import QuestionColumns, QuestionDataRequest

__all__ = ["Covariates", "Labels", "QuestionColumns", "QuestionData", "QuestionDataRequest"]
