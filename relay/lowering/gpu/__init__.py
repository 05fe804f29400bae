"""From bufferized kernels to code for GPUs: one launch for each nest that cannot be part of another."""
