"""The report of an estimate: one HTML file that a reader without statistics can use, offline."""

from trueup.report.result.write import write_report

__all__ = ["write_report"]
