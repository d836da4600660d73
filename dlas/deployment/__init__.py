"""Networks taken home: a row's build with all that it needs to run elsewhere.

- ``deploying``: from a row to a folder; ``remaking``: its build, made again where the cache has dropped it
- ``flexible``: from the rows of paths to one folder, each checked by ``checking``; ``routing`` chooses one
- ``packing``, ``extensions``, ``pictures``, ``readme``: what the folder holds
- ``run`` and ``runtimes``: what runs it, copied into the folder, without this package
- ``loading``: ``dlas.load``
"""
