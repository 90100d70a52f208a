"""The two steps joined, on any engine: `solve` runs aggregation, variance, shrinkage and calibration.

Comes from an engine and a `Plan` (`trueup.request`), goes to `findings` and `result` as a `Solution`.
"""
