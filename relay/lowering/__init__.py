"""Passes that take a module down a stage: to linalg, to loops over planned memory, to LLVM IR, GPU kernels or C. May
import `transforms` and the packages below it, but not `frontend`."""
