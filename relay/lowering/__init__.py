"""Down a level: relay to linalg, to loops over planned memory, to LLVM IR."""
