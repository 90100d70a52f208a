"""What everything else is built on: arrays, parameter checks, keywords, progress bars, random draws.

Imports nothing of the package but errors; everything may import it.
"""
