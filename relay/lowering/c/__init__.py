"""Writes C99 from loops over planned memory (stage 3): `function` writes statements, `expressions` has a row per
operation, `types` the scalar types."""
