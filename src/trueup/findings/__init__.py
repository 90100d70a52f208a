"""What stands out, the diagnosis of an estimate: workers, correlated workers, agreement, answers needed, odd input.

Comes from a `Solution` (`trueup.pipeline`), is kept on the `Estimate` (`est.findings`), goes to report and terminal.
"""
