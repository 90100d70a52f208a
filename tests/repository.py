"""Where the repository is, and the shared test vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent


def vectors() -> Any:
    """Return the numbers that were computed independently of this library."""
    return json.loads((TESTS / "test_vectors.json").read_text("utf-8"))
