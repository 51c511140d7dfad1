"""The example vendor of ONNX Runtime: a random sample of its functions passes, except for what the waivers list."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from sampling import SEED

from diopi_impl import Vendor, find_vendor
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype, Error
from lib_rt import Context

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="the example needs ONNX Runtime: pip install onnxruntime==1.32.0"
)
pytest.importorskip("onnx", reason="the example builds models with ONNX: pip install onnx==1.23.2")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "vendors" / "onnxruntime"
SAMPLE = 100  # functions of the standard, of which about half are defined


@pytest.fixture(scope="module")
def vendor() -> Iterator[Vendor]:
    """Yield the example vendor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield find_vendor("onnxruntime_vendor:vendor")


def test_the_vendor_has_at_least_100_functions_without_their_forms(vendor: Vendor) -> None:
    implemented = [name for name in prototypes() if vendor.has(name)]
    assert len({lookup(name).base for name in implemented}) > 100


def test_an_unsupported_element_type_is_reported_in_the_words_of_onnx_runtime(vendor: Vendor) -> None:
    with vendor.open_device() as device, Context(device) as context:
        tensors = [context.require_tensor((3,), Dtype.bfloat16) for _ in range(2)]
        tensors[1].write(np.ones(3, ml_dtypes.bfloat16))
        assert vendor.call("diopiSqrt", context, *tensors) is Error.DtypeNotSupported
    assert "Could not find an implementation for Sqrt" in vendor.last_error()


def test_a_session_serves_calls_with_other_sizes(vendor: Vendor) -> None:
    absolute = vendor.function("diopiAbs")
    assert absolute(np.float32([-1, 2])).tolist() == [1, 2]
    plans = absolute._plans
    count = len(plans)
    assert absolute(np.float32([-3, 4, -5])).tolist() == [3, 4, 5]
    assert len(plans) == count


def test_a_model_that_depends_on_sizes_serves_no_other_sizes(vendor: Vendor) -> None:
    pool = vendor.function("diopiAdaptiveAvgPool2d")
    for size in (4, 8, 4):
        image = np.arange(size**2, dtype=np.float32).reshape(1, 1, size, size)
        half = size // 2
        expected = image.reshape(1, 1, 2, half, 2, half).mean((3, 5))
        np.testing.assert_array_equal(pool(image, (2, 2)), expected)


def test_an_integer_attribute_beside_a_floating_point_tensor_remains_an_integer(vendor: Vendor) -> None:
    select = vendor.function("diopiSelect")
    assert select(np.float32([[1, 2], [3, 4]]), 0, 1, out=None).tolist() == [3, 4]


def test_a_random_sample_passes_with_the_waivers() -> None:
    if onnxruntime.__version__ != "1.32.0":
        pytest.skip("the waivers are those of ONNX Runtime 1.32.0")
    path = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    waivers = ["--waivers", str(FOLDER / "waivers.toml")]
    selection = ["--shuffle", os.environ[SEED], "--sample", str(SAMPLE), "-n", "1"]
    command = [sys.executable, "-m", "diopi_test", "run", "--strict", "--vendor", "onnxruntime_vendor:vendor"]
    done = subprocess.run(
        [*command, *waivers, *selection],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
