"""The evidence behind the defaults of trueup: studies that are part of the repository, not of the package."""
