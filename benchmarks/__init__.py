"""Measurements: one script, one question. Run them all with ``python -m benchmarks``."""
