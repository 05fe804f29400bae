"""C99 from stage 3: `function` writes the statements, `expressions` has a row per operation, `types` the scalars."""
