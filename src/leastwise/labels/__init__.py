"""Many labels for every row: how they are given, weighed, tied to one another, scored and decided on.

Scores of all labels stand side by side: label t has the columns ``starts[t] ... starts[t + 1] - 1``, one for each of
its classes. Codes of the classes are whole numbers, -1 where a label of a row is not known.
"""
