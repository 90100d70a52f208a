"""Files that evaluations leave: logs of judges, exports of annotations, hubs of forecasts.

Each format is a module that walks over a document and hands every score to `Records`; `formats` lists them all.
"""
