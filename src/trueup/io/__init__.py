"""Data in and out: frames and files to arrays of codes, arrays back to frames."""

from trueup.io.frames_out import make_frame
from trueup.io.readers.files import read_file
from trueup.io.readers.frames import read_frame
from trueup.io.table import Ids, Table

__all__ = ["Ids", "Table", "make_frame", "read_file", "read_frame"]
