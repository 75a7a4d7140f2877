"""Shared by the papers' experiments: data, settings, timing, tables and figures."""
