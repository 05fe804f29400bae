"""The passes that partition a module into functions of external compilers, one module each."""
