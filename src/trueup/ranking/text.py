"""A ranking in words: who leads, who cannot be told apart, who favours whom, and what to add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from trueup.errors import MOST_NAMES, counted, quoted
from trueup.ranking.contrast import LABELS, LIKE_THESE, THESE
from trueup.ranking.improvements import NOW, RUNS, cheapest
from trueup.ranking.pair import holm
from trueup.result.text import interval, short, text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.ranking.pair import MeanDifference
    from trueup.ranking.ranking import Ranking
    from trueup.ranking.standings import Standings

#: Systems, pairs and judges that are shown.
SHOWN, PAIRS, JUDGES = 20, 5, 5
#: Ratio of intervals from which on both are shown.
DIFFERS = 1.1
WORTH = "What the labels are worth with the help of the judges"
#: Standard errors beyond which labels and judges disagree.
DISAGREES = 2.0
NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip


def described(ranking: Ranking, **prices: float | None) -> list[str]:
    """Return a ranking as lines of text; see `Ranking.improvements` for prices."""
    lines = [*disagreements(ranking), size(ranking), *ranking.notes]
    if ranking.weights.pooled:
        lines.append(ranking.weights.pooled.replace("workers", "judges", 1))
    lines += ["", *leaders(ranking), "", *systems_table(ranking), "", *meaning(ranking)]
    lines += both_intervals(ranking)
    for part in (label_gains(ranking), favoured(ranking), additions(ranking, **prices)):
        lines += ["", *part] if part else []
    return lines


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def name(ranking: Ranking, system: int) -> str:
    """Return the name of a system as text that fits."""
    return short(ranking.system_names[system])


def _names(ranking: Ranking, systems: Sequence[int]) -> str:
    names = [name(ranking, system) for system in systems[:MOST_NAMES]]
    if len(systems) > MOST_NAMES:
        names.append(f"{len(systems) - MOST_NAMES} more")
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def size(ranking: Ranking) -> str:
    """Say how many systems, items and judges there are."""
    scores = ranking.standings.scores
    text = (
        f"{counted(scores.n_systems, 'system')}, {counted(scores.n_items, 'item')}, "
        f"{counted(scores.n_judges, 'judge')}"
    )
    effective = scores.effective_judges
    if scores.n_judges > 1:
        text = f"Effective number of judges: {effective:.2g} ({text}, weights by {ranking.weights.method})"
    else:
        text = f"Effective number of judges: 1 ({text})"
    return text


def leaders(ranking: Ranking) -> list[str]:
    """Say who leads, and who cannot be told apart."""
    standings = ranking.standings
    if standings.scores.n_systems == 1:
        return ["There is one system, and nothing to compare it with."]
    if not standings.complete:
        count = counted(standings.scores.n_systems, "system")
        return [f"{count}: only neighbours in the order are compared, and ranks are unknown."]
    clear, order = standings.clearly_better, standings.order.tolist()
    unknown = sum(word == "cannot be compared" for word in standings.verdicts)
    lines = []
    if unknown == len(standings.pairs):
        lines.append(f"No two systems can be compared: no two share two {standings.scores.units}.")
    elif not clear:
        lines.append(f"{_names(ranking, order)} cannot be told apart.")
    elif len(clear) == len(standings.pairs):
        lines.append(f"Every difference is clear: {' > '.join(_best_first(ranking, order))}.")
    else:
        low = standings.ranks[0]
        first = [s for s in order if low[s] == 1]
        rest = [s for s in order if low[s] > 1]
        lines.append(
            f"{_names(ranking, first)} lead{'s' if len(first) == 1 else ''}{_rest(ranking, rest)}."
        )
    if unknown and unknown < len(standings.pairs):
        lines.append(
            f"{counted(unknown, 'pair')} of systems cannot be compared: fewer than two shared "
            f"{standings.scores.units}."
        )
    return lines


def _best_first(ranking: Ranking, order: Sequence[int]) -> list[str]:
    low = ranking.standings.ranks[0]
    ranked = sorted(order, key=lambda s: int(low[s]))
    return [name(ranking, s) for s in ranked]


def _rest(ranking: Ranking, rest: list[int]) -> str:
    """Say what is known about the systems that do not lead."""
    inside = [pair for pair in ranking.standings.clearly_better if set(pair) <= set(rest)]
    if len(rest) == 1:
        ahead = {one for one, two in ranking.standings.clearly_better if two == rest[0]}
        leading = [s for s in ranking.standings.order.tolist() if s in ahead]
        return f"; {name(ranking, rest[0])} is clearly behind {_names(ranking, leading)}"
    if not inside:
        alone = int((ranking.standings.ranks[0] == 1).sum()) == 1
        how = "clearly behind" if alone else "clearly behind some of them"
        return f"; {_names(ranking, rest)} are {how}, and cannot be told apart"
    worse: dict[int, list[int]] = {}
    for better, behind in inside:
        worse.setdefault(better, []).append(behind)
    parts = [
        f"{name(ranking, better)} is clearly better than {_names(ranking, worse[better])}"
        for better in rest
        if better in worse
    ]
    more = f" and {len(parts) - PAIRS} more" if len(parts) > PAIRS else ""
    return f"; of the others, {'; '.join(parts[:PAIRS])}{more}"


def systems_table(ranking: Ranking) -> list[str]:
    """Show the systems, the best first."""
    standings = ranking.standings
    low, high = standings.ranks
    rows: list[tuple[str, ...]] = [
        ("system", "estimate", f"{100 * ranking.level:g}% interval", "rank", "items", "scores")
    ]
    for s in standings.order.tolist()[:SHOWN]:
        mean = standings.means[s]
        ends = f"{low[s]}" if low[s] == high[s] else f"{low[s]} to {high[s]}"
        rows.append(
            (
                name(ranking, s),
                "unknown" if np.isnan(mean.value) else f"{mean.value:.4g}",
                interval(*mean.interval),
                ends if standings.complete else "unknown",
                f"{mean.judged.items:,}",
                f"{standings.scores.counts[s]:,}",
            )
        )
    left = standings.scores.n_systems - SHOWN
    return [*text_table(rows), *([f"... and {left:,} more"] if left > 0 else [])]


def meaning(ranking: Ranking) -> list[str]:
    """Say what intervals and ranks are about, and what is rough about them."""
    standings = ranking.standings
    lines = [
        "Each interval is for one mean; ranks use only differences that stay clear among so many comparisons (Holm)."
    ]
    scores = standings.scores
    bases = {mean.basis for mean in standings.means}
    if scores.n_judges == 1:
        lines.append(
            "There is one judge: everything is about this judge, and another one may say otherwise."
        )
    elif not standings.fixed and THESE in bases:
        lines.append(
            "Where no item has two judges, nothing is known about others: intervals are about these judges."
        )
    elif standings.fixed:
        lines.append("Intervals are about these judges; others may say otherwise.")
    if len(scores.weight) == 2 and LIKE_THESE in bases:
        lines.append("Two judges say little about others like them: intervals are rough.")
    if scores.without_weight:
        what = "score" if scores.without_weight == 1 else "scores"
        lines.append(
            f"{scores.without_weight:,} {what} of a system on an item do not count: no judge with weight gave them."
        )
    if LABELS in bases:
        lines += _label_notes(ranking)
    elif len(scores.label):
        known = f"{counted(len(scores.label), 'label')} for {counted(scores.n_systems, 'system')}"
        lines.append(f"{known}: not used, since no system has three.")
    return lines


def _label_notes(ranking: Ranking) -> list[str]:
    standings = ranking.standings
    lines = ["Labelled items are taken for a random sample of all items."]
    if standings.scores.cluster is not None:
        lines.append("Intervals from labels do not know clusters of items.")
    without = [s for s in standings.order.tolist() if standings.means[s].basis != LABELS]
    if without:
        has = "has" if len(without) == 1 else "have"
        lines.append(
            f"{_names(ranking, without)} {has} fewer than three labels: the mean is on the scale of the judges, and "
            "must not be compared with the others in this table."
        )
    pairs = [pair for pair in standings.pairs if standings.difference(*pair).basis != LABELS]
    if pairs:
        lines.append(
            f"{counted(len(pairs), 'pair')} without three items labelled for both systems: compared on the scale of "
            "the judges."
        )
    return lines


def both_intervals(ranking: Ranking) -> list[str]:
    """Say how sure the first difference is for these judges, and for judges like these, where that is not the same."""
    standings = ranking.standings
    pair = next((p for p in standings.pairs if standings.difference(*p).known), None)
    if pair is None:
        return []
    contrast = standings.difference(*pair)
    title = f"{name(ranking, pair[0])} - {name(ranking, pair[1])}"
    if contrast.basis == LABELS:
        return [f"{title}: {contrast.value:.3g} ± {contrast.half_width:.2g} (labels)."]
    these, others = (_half(standings, contrast.judged, fixed=fixed) for fixed in (True, False))
    count = contrast.judged.judges
    many = NUMBERS[count] if count < len(NUMBERS) else f"{count:,}"
    if count == 1:
        return [f"{title}: with this judge {contrast.value:.3g} ± {these:.2g}."]
    both = np.isfinite(others) and max(these, others) > DIFFERS * min(these, others)
    if not both:
        return [f"{title}: {contrast.value:.3g} ± {contrast.half_width:.2g} ({contrast.basis})."]
    now = f"with these {many} judges {contrast.value:.3g} ± {these:.2g}"
    return [f"{title}: {now}; another {many} might say otherwise: ± {others:.2g}."]


def _half(standings: Standings, judged: MeanDifference, *, fixed: bool) -> float:
    low, high = judged.interval(standings.level, fixed=fixed)
    return float((high - low) / 2)


def disagreements(ranking: Ranking) -> list[str]:
    """Say where labels and judges see a difference of systems otherwise."""
    standings = ranking.standings
    found = []
    for pair in standings.pairs:
        labelled = standings.difference(*pair).labelled
        if labelled is not None and labelled.rectifier_variance > 0:
            found.append((pair, labelled, labelled.rectifier / labelled.rectifier_variance**0.5))
    p = holm(np.array([2 * float(stdtr(each.degrees, -abs(t))) for _, each, t in found]))
    lines = []
    for (pair, labelled, t), adjusted in zip(found, p.tolist(), strict=True):
        if abs(t) <= DISAGREES or adjusted > standings.alpha:
            continue
        judged = standings.difference(*pair).judged.value
        turned = judged * labelled.value < 0
        what = "disagree about the order of" if turned else "disagree about the difference between"
        lines.append(
            f"Judges and labels {what} {name(ranking, pair[0])} and {name(ranking, pair[1])}: {judged:.3g} by the "
            f"judges, {labelled.value:.3g} by the labels."
        )
    more = len(lines) - PAIRS
    return [*lines[:PAIRS], *([f"... and {more} more pairs"] if more > 0 else [])]


def label_gains(ranking: Ranking) -> list[str]:
    """Say what the labels brought, and how many more would halve the interval."""
    rows = [
        (system, f"{labels:,}", f"{worth:,.3g}" if np.isfinite(worth) else "all", more)
        for system, labels, worth, more in label_rows(ranking)[:SHOWN]
    ]
    head = ("system", "labels", "worth", "more to halve the interval")
    return [WORTH, *text_table([head, *rows])] if rows else []


def label_rows(ranking: Ranking) -> list[tuple[str, int, float, str]]:
    """Return name, labels, what they are worth and how many more would halve the interval, of systems with labels."""
    standings = ranking.standings
    rows = []
    for s in standings.order.tolist():
        labelled = standings.means[s].labelled
        if labelled is not None:
            more = labelled.labels_to_halve
            said = "more than there are items" if more is None else f"{more:,}"
            rows.append((name(ranking, s), labelled.labels, labelled.effective_labels, said))
    return rows


def favoured(ranking: Ranking) -> list[str]:
    """Name judges who favour systems."""
    effects = ranking.favours
    judges, systems = np.nonzero(effects.named)
    lines = []
    order = np.argsort(-np.abs(effects.effect[judges, systems]), kind="stable")
    for k in order.tolist()[:JUDGES]:
        effect, error = (
            float(values[judges[k], systems[k]]) for values in (effects.effect, effects.std_error)
        )
        better = effect * ranking.standings.sign > 0
        if not better and ranking.standings.scores.n_systems == 2:
            continue  # it favours the other one
        who = _capital(f"judge {quoted(str(ranking.judge_ids.name(int(judges[k]))))}")
        verb = "favours" if better else "marks down"
        lines.append(
            f"{who} {verb} {name(ranking, int(systems[k]))} by {abs(effect):.2g} ± {error:.1g} (standard error)."
        )
    more = len(judges) - JUDGES
    return [*lines, *([f"... and {counted(more, 'more such effect')}"] if more > 0 else [])]


def additions(ranking: Ranking, **prices: float | None) -> list[str]:
    """Say what would make differences sharper, and with prices what is the cheapest way."""
    ways = ranking.improvements(**prices)
    if not ways:
        return []
    said = [
        f"{'three runs for each one' if way.change == RUNS else way.change} ± {way.half_width:.2g}"
        for way in ways
        if way.change != NOW
    ]
    best = min(ways[1:], key=lambda way: way.std_error)
    labelled = any(mean.basis == LABELS for mean in ranking.standings.means)
    start = "By the judges alone, a" if labelled else "A"
    text = f"{start} difference of two systems is known to ± {ways[0].half_width:.2g} now; {', '.join(said)}."
    if best.std_error >= 0.95 * ways[0].std_error:
        text += " None of them helps much."
    least = cheapest(ways)
    if least is None:
        return [text]
    price = f"± {least.half_width:.2g} for {least.cost:,.4g}"
    return [text, f"Cheapest at these prices: {least.change}, {price}."]
