"""An external compiler that runs in numpy: what a package of another author looks like."""
