"""The eight stages of a run, in this order; each reads what the ones before it have written."""
