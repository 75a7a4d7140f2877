"""What a fit costs, told before it starts: solver, operations, memory and time."""

from leastwise.planning.plan import Plan, Step

__all__ = ["Plan", "Step"]
