"""Numerical linear algebra: arrays in, arrays out. Nothing here knows scikit-learn."""
