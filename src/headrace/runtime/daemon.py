"""The process that Spark forks Python workers from, with all that they need loaded: new ones are there at once."""

from __future__ import annotations

import gc
import importlib

from pyspark.daemon import manager

from headrace.kernel.compiled import load_kernels

if __name__ == "__main__":
    for module in ("pyspark.worker", "headrace.runtime.worker", "headrace.runtime.source"):
        importlib.import_module(module)
    load_kernels()
    gc.freeze()  # what is here stays, and its pages are shared with all workers
    manager()
