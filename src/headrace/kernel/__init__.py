"""The low-level engine: packed keys, hash tables and states as NumPy arrays, compiled by Numba. No PySpark here."""
