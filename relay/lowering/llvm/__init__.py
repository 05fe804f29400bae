"""The writer of LLVM IR text: the spelling of types, and a module for each kind of op."""
