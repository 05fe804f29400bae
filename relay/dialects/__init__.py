"""What an op is: types, constraints, syntax, formula, and facts that passes ask for. May import errors and other small
modules that every package may use, and knows nothing of how an op runs."""
