"""Dense convolution algorithms, one file each; imported as ``dlas.schedules``."""

if __name__ != "dlas.schedules":
    raise ImportError("import dlas.schedules: the bare name 'schedules' would load a second copy")
