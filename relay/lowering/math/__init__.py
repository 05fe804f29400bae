"""Functions of floats as arithmetic: additions, products, quotients, comparisons and bits, the same everywhere."""
