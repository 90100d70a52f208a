"""The sections of a report, one module each: text, tables and the charts of its topic.

A new chart is a `Figure` in the section of its topic; a new section is a module here and a line in `report/write.py`.
"""
