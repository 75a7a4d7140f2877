r"""Models of many tasks from parts of the rows, each of which holds whole tasks.

The shared system of the block-arrow problem (``linalg.arrow``) is a sum over tasks, so that a part tells no more than
a matrix of b x b for all of its tasks. A fit goes through the parts

    once      to know what there is (``facts``): tasks and their sizes, classes, weights;
    once      for a sample of whole tasks, on which centres, sigma, sharing and alpha are chosen in memory;
    once      for the sums at these parameters, and for each other alpha where that is refined on all rows;
    once      for the coefficients of the tasks, with the solution of the shared system put back.
"""

from leastwise.task_parts.facts import Facts, facts_of
from leastwise.task_parts.knowing import Known, known_of
from leastwise.task_parts.reading import Rules
from leastwise.task_parts.sampling import Sample, choose_tasks, gathered, told
from leastwise.task_parts.trial import PartsTrial
from leastwise.task_parts.working import Own, Remote, Terms

__all__ = [
    "Facts",
    "Known",
    "Own",
    "PartsTrial",
    "Remote",
    "Rules",
    "Sample",
    "Terms",
    "choose_tasks",
    "facts_of",
    "gathered",
    "known_of",
    "told",
]
