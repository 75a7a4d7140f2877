"""The estimators: thin layers that validate, then hand over to the core."""
