"""Results for people: one HTML file with claims, findings, charts and the numbers behind them."""

from trueup.report.page import Figure, PageTable, Section, write_page

__all__ = ["Figure", "PageTable", "Section", "write_page"]
