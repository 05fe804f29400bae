"""The implementation of `convert-layout` and `alter-op-layout`: the axes of each value, the rule by which each op takes
another layout, the cheapest positions of transposes, and the rewriting."""
