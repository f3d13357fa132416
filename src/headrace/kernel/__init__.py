"""What a task computes, at both levels: packed keys, tables and states in NumPy arrays, by Numba. No PySpark."""

from headrace.kernel.caches import guard_caches

guard_caches()
