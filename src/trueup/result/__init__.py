"""The result: `Estimate`, one class for every engine, with its tables, saving and loading.

Comes from a `Solution` (`trueup.pipeline`), is what the public functions return, goes to report and terminal.
"""
