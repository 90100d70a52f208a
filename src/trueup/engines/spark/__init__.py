"""Answers on a Spark cluster: blocks are rows of a cached DataFrame, visited where they are."""

from trueup.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
