"""ELF: relocatable objects, as LLVM writes them, made one shared object that the system's loader takes.

No linker is needed where a model is built, nor where it runs. `object_file` reads, `machines` knows what relocations
mean, `shared_object` lays out and writes; `static_library` keeps an object for the linkers of others.
"""
