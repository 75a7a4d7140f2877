"""Data of the papers' experiments: synthetic data with a known truth, and real data from local files."""

from leastwise.datasets.files import Dataset
from leastwise.datasets.loading import available, load
from leastwise.datasets.multi_label import MultiLabelData, load_arff
from leastwise.datasets.related import RelatedTasks, make_related_tasks
from leastwise.datasets.synthetic import (
    RotatedLabels,
    make_rotated_labels,
    make_three_class,
    three_class_density,
    three_class_posterior,
)

__all__ = [
    "Dataset",
    "MultiLabelData",
    "RelatedTasks",
    "RotatedLabels",
    "available",
    "load",
    "load_arff",
    "make_related_tasks",
    "make_rotated_labels",
    "make_three_class",
    "three_class_density",
    "three_class_posterior",
]
