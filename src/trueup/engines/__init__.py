"""Where a pass over the answers runs: in memory, on disk, on a Spark cluster, all behind one protocol.

Comes from `answers` (or files and frames that are too large for it); `algorithms`, `variance` and `pipeline` run on it.
"""
