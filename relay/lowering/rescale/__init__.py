"""Rescaling in floating point, where it is proved to give the reference's integers."""
