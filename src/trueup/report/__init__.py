"""Results for people: one HTML file with claims, findings, charts and the numbers behind them."""

from trueup.report.page import Figure, Section, Table, write_page

__all__ = ["Figure", "Section", "Table", "write_page"]
