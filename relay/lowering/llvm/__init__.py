"""LLVM IR text: how types are spelled, and one function per kind of operation."""
