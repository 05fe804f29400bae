"""What an op is: types, constraints, syntax, formula. Nothing about how it runs."""
