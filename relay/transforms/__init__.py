"""Passes that stay on their level: one pass, one file, the file named as the pass."""
