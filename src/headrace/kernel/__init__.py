"""The low-level engine: packed keys, hash tables and states in NumPy arrays, compiled by Numba. No PySpark."""

from headrace.kernel.caches import guard_caches

guard_caches()
