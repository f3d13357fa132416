"""One pass over a stream, hundreds of aggregates."""
