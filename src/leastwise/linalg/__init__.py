"""Numerical core: plain arrays in, plain arrays out; nothing here knows scikit-learn."""
