"""The index of a baseline file can be read without its data."""

from pathlib import Path

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.baseline.generate import generate_function
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.store import BaselineError, BaselineFile
from diopi_test.oracle.records import BaselineTensor, Expected


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a generated baseline file of diopiAdd."""
    folder = tmp_path_factory.mktemp("baseline")
    generate_function("diopiAdd", "smoke", folder)
    return folder / "diopiAdd.h5"


def test_index_view_has_everything_but_the_data(path: Path) -> None:
    whole, index_view = BaselineFile(path), IndexView(path)
    assert index_view.labels == whole.labels
    for label in whole.labels:
        actual, full = whole.case(label), index_view.case(label)
        assert (actual.id, actual.dtype) == (full.id, full.dtype)
        for name, value in actual.arguments.items():
            arguments = full.arguments[name]
            if isinstance(value, BaselineTensor):
                assert (arguments.values.shape, arguments.dtype, arguments.layout) == (
                    value.values.shape,
                    value.dtype,
                    value.layout,
                )
                assert not np.any(arguments.values)
            else:
                assert arguments == value
        wanted, expected = actual.expected["out"], full.expected["out"]
        assert isinstance(wanted, Expected)
        assert isinstance(expected, Expected)
        assert (expected.values.shape, expected.dtype) == (wanted.values.shape, wanted.dtype)


def test_the_data_are_not_read(path: Path, tmp_path: Path) -> None:
    """A file whose data is damaged still has an index."""
    import h5py

    damaged = tmp_path / path.name
    damaged.write_bytes(path.read_bytes())
    with h5py.File(damaged, "a") as file:
        file.attrs["data_sha256"] = "0" * 64
    index_view = IndexView(damaged)
    assert index_view.case(index_view.labels[0]).arguments
    with pytest.raises(BaselineError, match="damaged"):
        BaselineFile(damaged).case(index_view.labels[0])


def test_the_cases_of_one_element_type_come_first(path: Path) -> None:
    dtypes = [case.dtype for case in IndexView(path).cases(first=Dtype.float64)]
    remaining_dtypes = [dtype for dtype in dtypes if dtype is not Dtype.float64]
    assert remaining_dtypes
    assert dtypes == [Dtype.float64] * (len(dtypes) - len(remaining_dtypes)) + remaining_dtypes


def test_layouts_returns_the_layouts_of_all_tensors(path: Path) -> None:
    index_view = IndexView(path)
    found = {label: index_view.layouts(label) for label in index_view.labels}
    assert all(layouts for layouts in found.values())
    for label, layouts in found.items():
        case = BaselineFile(path).case(label)
        assert layouts == {
            *(value.layout for value in case.arguments.values() if isinstance(value, BaselineTensor)),
            *(value.layout for value in case.expected.values() if isinstance(value, Expected)),
        }
