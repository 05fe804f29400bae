"""External compiler `onednn`: regions as lists of oneDNN primitives, run by calling its C library."""
