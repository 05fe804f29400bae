"""What `convert-layout` and `alter-op-layout` share: which values have which axes, what each op needs to take another
layout, where the transposes cost least, and the rewriting."""
