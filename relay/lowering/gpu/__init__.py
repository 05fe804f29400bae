"""The lowering of bufferized kernels to GPU code: one launch for each loop nest that cannot be fused into another."""
