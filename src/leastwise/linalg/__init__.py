"""Numerical linear algebra: arrays in, arrays out. Nothing here depends on scikit-learn."""
