"""Functions of floats as arithmetic: additions, products, quotients, comparisons and bit operations, equal on all
targets."""
