"""Readers of file formats, one module each, shared by tables, data sets and streams.

``cells`` decides what a cell of text means; ``csv``, ``arff``, ``libsvm`` and ``arrow`` (Parquet and Arrow IPC) read
files into columns, and name the file, the line and the column where that fails.
"""
