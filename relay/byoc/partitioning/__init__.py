"""The passes from a module to functions that external compilers take, one file each."""
