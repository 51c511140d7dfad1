"""Sparse tensors on the device: one product calls a function, and other operators run on the CPU."""

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import diopi_torch  # noqa: E402  # behind the check for PyTorch

pytestmark = [  # PyTorch's, of making sparse tensors on any device
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]

A = torch.tensor([[0.0, 2, 0], [1, 0, 3], [0, 0, 0]])
DENSE = torch.tensor([[1.0, -2.0], [0.5, 4.0], [3.0, 0.0]])

CONSTRUCTORS: dict[str, Callable[[Any], Any]] = {
    "coordinates": torch.Tensor.to_sparse,
    "rows": torch.Tensor.to_sparse_csr,
    "columns": torch.Tensor.to_sparse_csc,
    "blocks": lambda x: x.to_sparse_bsr((1, 1)),
}

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "to_dense": lambda s, x: s.to_dense(),
    "clone": lambda s, x: s.clone(),
    "product": lambda s, x: s @ x,
    "sum": lambda s, x: torch.sparse.addmm(x, s, x, beta=0.5, alpha=2),
    "column": lambda s, x: s @ x[:, 0],
    "neg": lambda s, x: -s,
    "mul_": lambda s, x: s.mul_(2),
    "zero_": lambda s, x: s.zero_(),
    "copy_": lambda s, x: s.copy_(s.neg()),
    "transposed": lambda s, x: s.t(),
    "double": lambda s, x: s.double(),
    "mask": lambda s, x: (x @ x.T).sparse_mask(s),
}


def assert_agree(found: Any, expected: Any) -> None:
    """Assert that a result lies on the device and agrees with the CPU in values and sparse layout."""
    assert found.device.type == "diopi" and found.layout == expected.layout
    torch.testing.assert_close(found.cpu(), expected)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("layout", CONSTRUCTORS)
def test_sparse_results_equal_those_of_the_cpu(vendor: AlteredVendor, layout: str, operator: str) -> None:
    make, apply = CONSTRUCTORS[layout], OPERATORS[operator]
    expected = apply(make(A), DENSE)
    for sparse in (make(A.to("diopi")), make(A).to("diopi")):
        assert_agree(apply(sparse, DENSE.to("diopi")), expected)


def test_compressed_rows_are_multiplied_by_a_function(vendor: AlteredVendor) -> None:
    found, expected = A.to("diopi").requires_grad_(), A.clone().requires_grad_()
    results = [torch.sparse.mm(tensor.to_sparse_csr(), DENSE.to(tensor.device)) for tensor in (found, expected)]
    for result in results:
        result.square().sum().backward()
    assert_agree(results[0].detach(), results[1].detach())
    assert_agree(found.grad, expected.grad)
    assert vendor.called.count("diopiSpMM") == 1 and "addmm" not in diopi_torch.fallbacks()


@pytest.mark.parametrize("change", [torch.Tensor.double, torch.Tensor.to_sparse], ids=["double", "sparse"])
def test_unsupported_products_run_on_the_cpu(vendor: AlteredVendor, change: Callable[[Any], Any]) -> None:
    x, dense = A.to_sparse_csr(), change(DENSE) if change is torch.Tensor.double else A.to_sparse_csr()
    x = x.to(dense.dtype)
    assert_agree(x.to("diopi") @ dense.to("diopi"), x @ dense)
    assert diopi_torch.fallbacks() == {"mm": 1}


def test_products_fall_back_if_the_vendor_lacks_the_function(activate_vendor: Callable[[Any], Any]) -> None:
    activate_vendor(AlteredVendor(lacks={"diopiSpMM"}))
    assert_agree(A.to_sparse_csr().to("diopi") @ DENSE.to("diopi"), A @ DENSE)
    assert diopi_torch.fallbacks() == {"mm": 1}


def test_mismatched_sizes_raise_the_error_of_pytorch(vendor: AlteredVendor) -> None:
    with pytest.raises(RuntimeError, match="multiplied"):
        A.to_sparse_csr().to("diopi") @ DENSE.T.to("diopi")


@pytest.mark.parametrize("reduction", ["sum", "amax"])
def test_reductions_of_products_have_gradients(vendor: AlteredVendor, reduction: str) -> None:
    found, expected = DENSE.to("diopi").requires_grad_(), DENSE.clone().requires_grad_()
    for dense in (found, expected):
        rows = A[:2].to_sparse_csr().to(dense.device).requires_grad_()
        torch.sparse.mm(rows, dense, reduction).sum().backward()
    assert_agree(found.grad, expected.grad)


@pytest.mark.parametrize("layout", CONSTRUCTORS)
def test_sparse_tensors_can_be_saved_and_printed(vendor: AlteredVendor, layout: str) -> None:
    x, file = CONSTRUCTORS[layout](A).to("diopi"), io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert_agree(torch.load(file), CONSTRUCTORS[layout](A))
    assert "device='diopi:0', size=(3, 3)" in repr(x)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.SparseAdam, torch.optim.Adagrad])
def test_an_embedding_with_sparse_gradients_is_trained(vendor: AlteredVendor, optimizer: Any) -> None:
    here = torch.nn.Embedding(5, 3, sparse=True)
    trained = [here, copy.deepcopy(here).to("diopi")]
    for module in trained:
        steps = optimizer(module.parameters(), lr=0.1)
        for _ in range(2):
            steps.zero_grad()
            module(torch.tensor([0, 1, 1, 4], device=module.weight.device)).square().sum().backward()
            steps.step()
    assert_agree(trained[1].weight.grad, here.weight.grad)
    assert_agree(trained[1].weight.detach(), here.weight.detach())
