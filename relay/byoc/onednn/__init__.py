"""External compiler `onednn`: regions become lists of oneDNN primitives, run through its C library."""
