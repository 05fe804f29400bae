"""Schedules: how `linalg` operations on memrefs become loops, one file for each kind of schedule."""
