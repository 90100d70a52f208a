"""The command line: parse, call, print. So far `trueup demo` and `trueup --version`."""

from __future__ import annotations

import argparse

from trueup import __version__
from trueup.cli.demo import demo


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits with 2 on a usage error."""
    parser = argparse.ArgumentParser(
        prog="trueup",
        description="The best estimate of the truth from the numeric answers of many imperfect sources.",
    )
    parser.add_argument("--version", action="version", version=f"trueup {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("demo", help="estimate on built-in data and show how close it comes")
    parser.parse_args(arguments)
    demo()
