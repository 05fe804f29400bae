"""Links relocatable ELF objects, as LLVM writes them, into a shared object that the system's loader accepts.

So neither the machine that builds a model nor the one that executes it needs a linker. `object_file` reads objects,
`machines` applies relocations, `shared_object` lays out and writes; `static_library` wraps an object for other linkers.
"""
