"""`python -m trueup`."""

from trueup.cli import main

main()
