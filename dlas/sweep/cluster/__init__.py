"""A study on the machines of a Ray cluster: rows are those of a run on the machine with the device.

- ``connection``: joining a cluster, or starting one on this machine
- ``nodes``: what its machines are, and which of them have the devices of a study
- ``station``: on a machine with a device, a sweep of the points that it is given
- ``spread``: its runner, which has networks and programs made on machines without a device too
- ``helper``: on such a machine, what makes them
- ``parcels``: artifacts that travel, checked by their digests
- ``sweep``, ``session``: here, giving points to stations and writing their rows
"""
