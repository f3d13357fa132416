"""The low-level engine: packed keys, hash tables and states in NumPy arrays, compiled by Numba. No PySpark."""
