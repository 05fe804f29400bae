"""LLVM IR text: the spelling of types, and one writer for each kind of op."""
