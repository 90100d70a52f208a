"""What the caller knows about the questions: groups, covariates and gold truths, read in any form."""
