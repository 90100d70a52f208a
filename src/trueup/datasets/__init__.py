"""Data to try things on: simulated answers whose truth is known."""

from trueup.datasets.simulate import Simulation, simulate

__all__ = ["Simulation", "simulate"]
