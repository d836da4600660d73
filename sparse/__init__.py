"""Sparse formats and convolution algorithms, one file each; imported as ``dlas.sparse``."""

if __name__ != "dlas.sparse":
    raise ImportError("import dlas.sparse: the bare name 'sparse' belongs to another package")
