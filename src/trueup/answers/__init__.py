"""Answers as a sparse matrix, questions x workers: the one input type, its blocks, panels and scales."""
