"""Subnetworks of Once-for-All's MobileNetV3: ``written`` as text, ``shapes``, ``tables``, ``modules``."""
