"""The definitions of ops: types, constraints, syntax, formulas, and facts that passes query. May import `errors` and
other small modules that every package may use; does not depend on how ops are executed."""
