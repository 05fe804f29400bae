"""Writes C99 from stage 3: `function` writes statements, `expressions` has a row per operation, `types` the scalar
types."""
