"""What a deployed folder holds: tensors, extensions, exported programs, words on images and classes."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dlas.axes.datasets import fashion_mnist
from dlas.axes.datasets.cifar10 import DEVIATION, MEAN, Cifar10
from dlas.axes.datasets.digits import Digits
from dlas.axes.datasets.fashion_mnist import FashionMnist
from dlas.axes.datasets.imagenet import DEVIATION as IMAGENET_DEVIATION
from dlas.axes.datasets.imagenet import MEAN as IMAGENET_MEAN
from dlas.axes.datasets.imagenet import Imagenet
from dlas.deployment.extensions import extensions
from dlas.deployment.pictures import CIFAR10, FASHION, labels, preparation
from dlas.deployment.runtimes.torch import check_plain
from dlas.deployment.runtimes.tvm import read_tensors
from dlas.stack import Data, Dataset, Target


class Undescribed(Dataset):
    def load(self) -> Data:
        raise NotImplementedError


def test_tensors_of_every_type_are_read_as_they_were_written(tmp_path: Path) -> None:
    kinds = ("float32", "float16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
    arrays = {kind: np.arange(6).reshape(2, 3).astype(kind) for kind in kinds} | {"none": np.zeros(0, "f4")}
    save_file(arrays, tmp_path / "arrays")
    found, expected = read_tensors(tmp_path / "arrays"), load_file(tmp_path / "arrays")
    assert set(found) == set(expected)
    for name, array in found.items():
        assert array.dtype == expected[name].dtype
        np.testing.assert_array_equal(array, expected[name])
    (tmp_path / "other").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="no safetensors file"):
        read_tensors(tmp_path / "other")


def test_the_extensions_of_a_target_have_the_kernels_names() -> None:
    flags = ["sse4_1", "pni", "bmi1", "abm", "avx2", "fma", "avx512f", "avx512_vnni", "clwb", "hypervisor"]
    haswell = Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 1}, 1)
    assert extensions(haswell, flags) == ["sse4_1", "pni", "bmi1", "abm", "avx2", "fma"]
    newer = Target({"kind": "llvm", "mcpu": "icelake-server", "mattr": ["-avx512f"], "num-cores": 1}, 1)
    assert "avx512f" not in extensions(newer, flags) and "avx512_vnni" not in extensions(newer, flags)


def numbers_of(dataset: Dataset) -> list[float]:
    """Return the fractions in the text about a data set's images."""
    return [float(number) for number in re.findall(r"0\.\d+", preparation(dataset))]


def test_a_readme_says_how_images_are_normalised() -> None:
    assert numbers_of(Cifar10("nowhere")) == pytest.approx([*MEAN.ravel(), *DEVIATION.ravel()])
    assert numbers_of(Imagenet("nowhere")) == pytest.approx([*IMAGENET_MEAN, *IMAGENET_DEVIATION])
    assert numbers_of(FashionMnist()) == pytest.approx([fashion_mnist.MEAN, fashion_mnist.DEVIATION])
    mean, deviation = numbers_of(Digits())
    # Grey levels reach from 0 to 1.
    images, _ = Digits().load().train[range(1077)]
    reached = [-mean / deviation, (1 - mean) / deviation]
    assert [images.min(), images.max()] == pytest.approx(reached, rel=1e-3)
    text = preparation(Imagenet("nowhere"))
    assert "centre cropped" in text and "root :" not in text and "https" not in text
    assert "Undescribed" in preparation(Undescribed()), "without a docstring its name has to do"


def test_classes_have_their_names_where_the_data_set_has_any(imagenet_root: Path, cifar_root: Path) -> None:
    assert labels("cifar10", Cifar10(str(cifar_root)), 10) == list(CIFAR10)
    folders = sorted(path.name for path in (imagenet_root / "val").iterdir())
    assert labels("imagenet", Imagenet(str(imagenet_root), 32), len(folders)) == folders
    assert labels("digits", Digits(), 3) == ["0", "1", "2"]
    assert labels("fashion_mnist", FashionMnist(), 10) == list(FASHION)
    assert labels("fashion_mnist", FashionMnist("mnist"), 3) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("data/sample_inputs/model.pt", b"pickled"),
        ("data/weights/model.pt", b"pickled"),
        ("data/constants/custom_obj_0", b"pickled"),
        ("data/aotinductor/model/library.so", b"code"),
        ("data/weights/model_weights_config.json", b'{"config": {"w": {"use_pickle": true}}}'),
    ],
)
def test_an_exported_program_is_never_unpickled(tmp_path: Path, member: str, content: bytes) -> None:
    plain = {
        "models/model.json": b"{}",
        "data/sample_inputs/model.pt": b"",
        "data/weights/weight_0": b"1234",
        "data/weights/model_weights_config.json": b'{"config": {"w": {"use_pickle": false}}}',
    }
    for members, refused in ((plain, False), ({**plain, member: content}, True)):
        with zipfile.ZipFile(tmp_path / "program.pt2", "w") as archive:
            for name, data in members.items():
                archive.writestr(f"program/{name}", data)
        if refused:
            with pytest.raises(ValueError, match=member):
                check_plain(tmp_path / "program.pt2")
        else:
            check_plain(tmp_path / "program.pt2")
