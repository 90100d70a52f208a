"""Readers: one module per format, each turning a frame or a file into columns of answers."""
