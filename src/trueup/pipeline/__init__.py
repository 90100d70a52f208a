"""The two steps joined: aggregation, variance, shrinkage, calibration, on any engine."""
