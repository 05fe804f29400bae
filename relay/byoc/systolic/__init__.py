"""`systolic`: a simulated accelerator, and the worked example of an external compiler (docs/bring_your_own_codegen.md).

`isa` says what the machine is, `simulator` what each instruction does and costs; `codegen`, `products` and `vectors`
write programs from functions, `cost` estimates their cycles, `compiler` and `loader` are the two plug-in halves.
"""
