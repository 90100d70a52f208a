"""Example data: simulated answers, public data sets, and small tables from publications.

>>> from trueup import datasets
>>> datasets.names()
('emotions', 'calories', 'groceries', 'nflx_public', 'population', 'dots', 'pies')
>>> datasets.table1().answers
Answers(4 questions, 4 workers, 16 answers)
"""

from trueup.datasets.dataset import Dataset
from trueup.datasets.download import download
from trueup.datasets.folder import load_folder
from trueup.datasets.load import load
from trueup.datasets.published import Batting, batting, table1
from trueup.datasets.registry import Entry, describe, names
from trueup.datasets.simulate import Simulation, simulate

__all__ = [
    "Batting",
    "Dataset",
    "Entry",
    "Simulation",
    "batting",
    "describe",
    "download",
    "load",
    "load_folder",
    "names",
    "simulate",
    "table1",
]
