"""The layers of the stack: a folder each, in which each file is a part.

| layer | parts |
|---|---|
| dataset | ``datasets/`` |
| model | ``models/`` |
| compression | ``compression/`` |
| algorithm and data format | ``schedules/`` (dense) and ``sparse/`` at the top of the repository, which are
  installed as ``dlas.schedules`` and ``dlas.sparse``; ``choosers/`` takes another of them for each layer |
| compiler | ``compilers/`` |
| hardware | ``hardware_profiles/`` at the top of the repository, a TOML a device; drivers in ``hardware/`` |

The interfaces of parts are in ``dlas.stack``.  Folders within a folder hold what its parts share.
"""
