"""How `linalg` operations on memrefs become loops: one file per kind of schedule."""
