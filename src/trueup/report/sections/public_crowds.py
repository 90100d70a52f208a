"""The public crowds with known truths behind the prior over crowds, by family: what a report says of its sources."""

from __future__ import annotations

from typing import NamedTuple


class CrowdFamily(NamedTuple):
    """Crowds that did the same kind of task.

    Attributes
    ----------
    task : str
        What they were asked.
    crowds, questions : int
        Number of crowds, and of their questions with known truth.
    source : str
        Public repository of the answers, as owner/name.
    """

    task: str
    crowds: int
    questions: int
    source: str


METAGGR, PHOTOGRAPHS = "cran/metaggR", "sbarrington/height_weight_estimation_data"
FAMILIES = (
    CrowdFamily("structured expert judgement", 25, 291, "grongen/anduryl"),
    CrowdFamily("chances, partial information", 3, 120, METAGGR),
    CrowdFamily("heights from photographs", 3, 607, PHOTOGRAPHS),
    CrowdFamily("weights from photographs", 3, 607, PHOTOGRAPHS),
    CrowdFamily("calories of meals", 2, 72, METAGGR),
    CrowdFamily("dots in a picture", 2, 58, "rdrapeau/Wisdom-of-Multiple-Guesses-Scripts"),
    CrowdFamily("epidemic, expert forecasts", 2, 368, "epiforecasts/covid.german.forecasts"),
    CrowdFamily("games, chance of winning", 2, 120, METAGGR),
    CrowdFamily("general numeric questions", 2, 16, "joshua-a-becker/Data-Reanalyses"),
    CrowdFamily("emotion in headlines", 1, 700, "zhydhkcws/crowd_truth_infer"),
    CrowdFamily("hospital admissions, models", 1, 312, "cdcepi/FluSight-forecast-hub"),
    CrowdFamily("parts of a whole, arcs", 1, 264, "dwskau/arcs-angles-area"),
    CrowdFamily("parts of a whole, pies", 1, 47, "dwskau/pie-variations"),
    CrowdFamily("populations of cities", 1, 276, "daz45/population---truth-discovery"),
    CrowdFamily("prices of groceries", 1, 10, METAGGR),
    CrowdFamily("relevance, language-model judges", 1, 500, "llm4eval/LLMJudge-benchmark"),
    CrowdFamily("statements, chance of being true", 1, 500, METAGGR),
    CrowdFamily("temperature, weather models", 1, 7160, "cran/ensembleBMA"),
    CrowdFamily("unemployment, professional forecasters", 1, 165, "jmontgomery/EBMAforecast"),
)
CROWDS = sum(family.crowds for family in FAMILIES)
