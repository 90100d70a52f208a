"""The study of shrinkage is part of the repository (`make evidence`), and no page or help text says otherwise."""

from __future__ import annotations

from commands import need_cli, printed
from repository import ROOT

need_cli()


def test_no_page_names_a_command_that_is_gone() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    assert len(pages) > 100
    named = [page.name for page in pages if "study shrinkage" in page.read_text("utf-8")]
    assert set(named) <= {"CHANGELOG.md"}  # which says that it is gone
    assert "shrinkage" not in printed("study", "--help")
    assert "evidence:" in (ROOT / "Makefile").read_text("utf-8")
