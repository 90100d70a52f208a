"""Answers larger than memory: read once into a working folder, then visited block by block.

`ingest` reads files into a folder, `StoredAnswers` is what is in it, `DiskEngine` visits its blocks.
"""

from trueup.engines.disk.blocks import StoredAnswers
from trueup.engines.disk.engine import DiskEngine
from trueup.engines.disk.intake import ingest

__all__ = ["DiskEngine", "StoredAnswers", "ingest"]
