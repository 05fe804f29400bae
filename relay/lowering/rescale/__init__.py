"""Replacements of integer rescaling by cheaper arithmetic, which are proved to give the same integers."""
