"""`systolic`: a simulated accelerator, the worked example of an external compiler (docs/bring_your_own_codegen.md).

`isa` defines the machine, `simulator` executes its instructions; `codegen`, `products` and `vectors` generate programs
from functions, `cost` estimates their cycles, `compiler` and `loader` are the two halves of the plug-in.
"""
