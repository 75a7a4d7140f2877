"""Reports on fitted models and their held-out predictions: calibration, tasks, outcomes, similarities."""
