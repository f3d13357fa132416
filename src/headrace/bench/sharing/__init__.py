"""The studies of the two papers about shared slices, fragments and shards, with headrace's own engine."""
