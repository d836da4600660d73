"""A point holds its parts, which are no part of what it is."""

from __future__ import annotations

from dataclasses import replace

from dlas.axes.models.cifar_resnet18 import CifarResnet18
from dlas.sweep.study.point import NONE, Choice, Point

POINT = Point(
    dataset=Choice("random"),
    model=Choice("cifar_resnet18"),
    compression=NONE,
    algorithm=Choice("direct"),
    compiler=Choice("untuned"),
    hardware=Choice("local_cpu", (("threads", 2),)),
    batch=1,
    seed=0,
)


def test_parts_have_their_options_and_are_made_once() -> None:
    point = replace(POINT)
    assert point.device is point.device and point.device.local
    assert isinstance(point.model_part, CifarResnet18) and point.model_class is CifarResnet18
    assert not point.compiler_class.own_kernels and not point.dataset_class.labelled
    assert type(point.compiler_part) is point.compiler_class
    assert type(point.algorithm_part).__module__ == "dlas.schedules.direct"
    assert type(point.compression_part).__module__ == "dlas.axes.compression.none"


def test_parts_that_were_made_change_neither_identity_nor_what_another_point_has() -> None:
    point = replace(POINT)
    assert point.device is not None
    other = replace(point, hardware=Choice("local_cpu", (("threads", 1),)))
    assert point == POINT and hash(point) == hash(POINT) and point.id == POINT.id
    assert other.device != point.device
