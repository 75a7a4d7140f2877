"""The ridge problem: rows, targets, kernels, centres, coupling of tasks and of labels, intercepts."""
