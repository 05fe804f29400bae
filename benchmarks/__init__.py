"""Benchmarks: against other runtimes (`compare`), kernel by kernel, and of the machinery."""
