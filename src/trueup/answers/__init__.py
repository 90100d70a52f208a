"""Answers as a sparse matrix, questions x workers: the one input type, its blocks, panels and scales.

Comes from `io` (columns that were read), goes to `engines` (where passes over its blocks run).
"""
