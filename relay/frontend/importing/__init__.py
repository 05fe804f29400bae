"""Functions and classes that the importers of all formats share: they build ops, collect problems, check the options of
callers, and recognize formats by content."""
