"""The path of ``fit``: parameters, data, choice of inputs, plan, search, solution, storage."""
