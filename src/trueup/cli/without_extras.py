"""The command line of an installation without the extra `cli`: the demo, and how to get the rest."""

from __future__ import annotations

import argparse

from trueup import __version__
from trueup.core.libraries import need

DESCRIPTION = "The best estimate of the truth from the numeric answers of many imperfect sources."
MORE = ("estimate", "update", "compare", "diagnose", "doctor", "simulate", "datasets", "study")


def run(tokens: list[str]) -> None:
    """Run the demo, or say what any other command needs."""
    parser = argparse.ArgumentParser(
        prog="trueup",
        description=DESCRIPTION,
        epilog=f'More commands ({", ".join(MORE)}) come with: pip install "trueup[cli]"',
    )
    parser.add_argument("--version", action="version", version=f"trueup {__version__}")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("demo", help="estimate on built-in data and show how close it comes")
    for name in MORE:
        # Without its own --help: whatever follows, what is needed first is the extra.
        commands.add_parser(name, add_help=False, prefix_chars="\0").add_argument("rest", nargs="*")
    chosen = parser.parse_args(tokens)
    if chosen.command in MORE:
        need("cyclopts", "cli")
    elif chosen.command is None:
        parser.print_help()
    elif not chosen.quiet:
        from trueup.cli.demo import demo

        demo()
