"""Networks and kernels as WebAssembly modules that import nothing, TVM's runtime least of all."""
