"""``python -m dlas``, the same as the command ``dlas``."""

from dlas.face.cli import main

if __name__ == "__main__":
    main()
