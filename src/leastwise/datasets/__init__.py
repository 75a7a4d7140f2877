"""Data of the papers' experiments: examples to draw whose truth is known, real sets to read from your files."""

from leastwise.datasets.files import Dataset
from leastwise.datasets.loading import available, load
from leastwise.datasets.related import RelatedTasks, make_related_tasks
from leastwise.datasets.synthetic import make_three_class, three_class_density, three_class_posterior

__all__ = [
    "Dataset",
    "RelatedTasks",
    "available",
    "load",
    "make_related_tasks",
    "make_three_class",
    "three_class_density",
    "three_class_posterior",
]
