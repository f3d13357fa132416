"""The benchmark: one workload by plain Spark, by headrace and by other engines, with the answers compared."""
