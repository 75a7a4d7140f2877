"""The displays of one model, under the name that they had at first; see :mod:`leastwise.displays`."""

from leastwise.displays import PosteriorDisplay, ReliabilityDisplay

__all__ = ["PosteriorDisplay", "ReliabilityDisplay"]
