"""Data of the paper's experiments: an example in the plane to draw, real sets to read from your files."""

from leastwise.datasets.files import Dataset, available, load
from leastwise.datasets.synthetic import make_three_class, three_class_density, three_class_posterior

__all__ = [
    "Dataset",
    "available",
    "load",
    "make_three_class",
    "three_class_density",
    "three_class_posterior",
]
