"""Functions of torch_cpu that only rename arguments call the operator with the names of the ATen table."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch_cpu needs PyTorch")


def test_renamed_functions_pass_arguments_by_the_names_of_the_operator() -> None:
    from diopi_impl.torch_cpu import vendor
    from diopi_impl.torch_cpu.renamed import RENAMED

    assert all(vendor.has(f"diopi{name}") for name in RENAMED.split())
    ones = torch.ones(2)
    assert vendor.function("diopiClampMax")(2 * ones, 1).tolist() == [1, 1]
    assert vendor.function("diopiLerpTensor")(ones, 3 * ones, 0.5).tolist() == [2, 2]
    assert vendor.function("diopiWhere")(torch.tensor([True, False]), ones, 2 * ones).tolist() == [1, 2]
    assert vendor.function("diopiRepeat")(ones, (2,)).tolist() == [1, 1, 1, 1]
    assert vendor.function("diopiUnfoldBackward")(torch.ones(2, 2), (3,), 0, 2, 1).tolist() == [1, 2, 1]


def test_no_function_depends_on_the_sources_of_pytorch() -> None:
    """A run parses the implementing modules and all that they import: 1,500 files of PyTorch take 15 seconds."""
    from diopi_impl.torch_cpu import vendor

    modules = vendor.source_modules
    assert modules["diopiClampMax"] == "diopi_impl.torch_cpu.renamed"
    assert {module.rpartition(".")[0] for module in modules.values()} == {"diopi_impl.torch_cpu"}
