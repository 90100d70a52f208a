"""The document of `trueup diagnose --format json`: all findings, under keys that stay the same."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from trueup import __version__
from trueup.cli.summary import what_was_read

if TYPE_CHECKING:
    from trueup.findings.collection import Findings
    from trueup.result.estimate import Estimate


def findings_document(est: Estimate, findings: Findings) -> str:
    """Return the findings as JSON; a part that cannot be known is null, and `missing` says why.

    The keys are those of the tables that the other options write; rows of `questions` come by need.
    """
    about = est.diagnosis
    content = {
        "trueup": __version__,
        "read": what_was_read(est),
        "method": about.method,
        "why": about.why,
        "warnings": list(about.warnings),
        "workers": _table(findings.workers, "workers"),
        "suspicious_answers": _table(findings.answers, "frame"),
        "pairs": _pairs(findings),
        "questions": _questions(findings),
        "agreement": _agreement(findings),
        "second_step": _second_step(findings),
        "missing": list(findings.missing),
    }
    return json.dumps(_without_nan(content), allow_nan=False, default=str, indent=1)


def _table(part: Any, frame: str) -> dict[str, Any] | None:
    if part is None:
        return None
    return {"summary": part.summary, "rows": getattr(part, frame).to_pylist()}


def _pairs(findings: Findings) -> dict[str, Any] | None:
    part = findings.correlated
    if part is None:
        return None
    found = part.found
    counts = {"compared": found.n_pairs, "effective_workers": found.effective}
    return {"summary": part.summary, **counts, "rows": part.pairs.to_pylist()}


def _questions(findings: Findings) -> dict[str, Any] | None:
    part = findings.answers_needed
    if part is None:
        return None
    return {
        "summary": part.summary,
        "target_std_error": part.target,
        "target_is_relative": part.relative,
        "more_answers": part.total,
        "rows": part.by_need.to_pylist(),
    }


def _agreement(findings: Findings) -> dict[str, Any] | None:
    part = findings.agreement
    if part is None:
        return None
    coefficients = [
        {"name": each.name, "value": each.value, "lower": each.lower, "upper": each.upper}
        for each in (part.one, part.mean, part.alpha, *part.two_way)
    ]
    return {"summary": part.summary, "typical_answers": part.k, "coefficients": coefficients}


def _second_step(findings: Findings) -> dict[str, Any] | None:
    part = findings.second_step
    if part is None:
        return None
    return {
        "helps": bool(part.helps),
        "expected_ratio": part.expected_ratio,
        "uniformity": part.uniformity,
        "variance": part.variance,
        "prior_variance": part.prior_variance,
        "alpha_star": None if part.condition is None else part.condition.alpha_star.value,
    }


def _without_nan(value: Any) -> Any:
    """Replace numbers that JSON does not know by null."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
