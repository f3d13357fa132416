"""Aggregates as states that combine: `lift` a value, combine two states, `lower` to the answer."""
