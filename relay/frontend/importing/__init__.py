"""What the importers of all formats share: ops, collected problems, the options of callers, formats by content."""
