"""From scores to probabilities, sets, intervals and decisions with a bounded error rate."""
