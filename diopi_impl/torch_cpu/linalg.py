"""Matrix products, decompositions, triangular systems and distances, with their gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and
element types.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.autograd import gradients

warnings.filterwarnings("ignore", message="torch.triangular_solve is deprecated")

PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"diopiMm": torch.mm, "diopiBmm": torch.bmm}
"""The functions of PyTorch that multiply two matrices or two batches of matrices."""


def _make_product_function(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return an implementation that applies a product of PyTorch to two matrices."""

    def apply(input: Tensor, mat2: Tensor) -> Tensor:
        """Apply the product."""
        return function(input, mat2)

    return apply


for _name, _function in PRODUCTS.items():
    vendor.implements(_name)(_make_product_function(_function))


@vendor.implements("diopiBaddbmm")
def baddbmm(input, batch1, batch2, beta, alpha):
    """Return beta · input + alpha · batch1 batch2, for batches of matrices."""
    if not input.dtype.is_floating_point and not input.dtype.is_complex:
        beta, alpha = int(beta), int(alpha)
    return torch.baddbmm(input, batch1, batch2, beta=beta, alpha=alpha)


@vendor.implements("diopiAddmm")
def addmm(input, mat1, mat2, beta, alpha):
    """Return beta · input + alpha · mat1 mat2."""
    return torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


@vendor.implements("diopiMatmul")
def matmul(input, other):
    """Return the matrix product, with broadcasting of batches and with vectors, as NumPy defines it."""
    return torch.matmul(input, other)


@vendor.implements("diopiMatmulBackward")
def matmul_backward(grad_out, input, other):
    """Return the gradients of both factors."""
    return gradients(torch.matmul, grad_out, input, other)


@vendor.implements("diopiLinear")
def linear(input, weight, bias):
    """Return input weightᵀ + bias."""
    return torch.nn.functional.linear(input, weight, bias)


@vendor.implements("diopiLinearBackward")
def linear_backward(grad_output, input, weight, *, out):
    """Return the gradients of input, weight and bias."""
    bias = torch.zeros(weight.shape[:1] if out[2] is None else out[2].shape, dtype=weight.dtype)
    return gradients(torch.nn.functional.linear, grad_output, input, weight, bias)


@vendor.implements("diopiCholesky")
def cholesky(mat, upper, checkerror):
    """Return the Cholesky factor of each matrix, and the order of its first minor that is not positive, or 0."""
    factor, info = torch.linalg.cholesky_ex(mat, upper=upper, check_errors=checkerror)
    return factor, info


@vendor.implements("diopiCholeskyBackward")
def cholesky_backward(grad_output, L, upper):
    """Return the gradient of mat, computed by autograd."""
    mat = L.mH @ L if upper else L @ L.mH
    (grad_mat,) = gradients(lambda m: torch.linalg.cholesky(m, upper=upper), grad_output, mat)
    assert grad_mat is not None
    return (grad_mat + grad_mat.mH) / 2  # PyTorch's gradient has an imaginary part on the diagonal


@vendor.implements("diopiTriangularSolve")
def triangular_solve(b, mat, upper, transpose, unitriangular):
    """Return the solution of the triangular system, and the matrix broadcast to the batch."""
    x, cloned_mat = torch.triangular_solve(b, mat, upper, transpose, unitriangular)
    return x, cloned_mat


@vendor.implements("diopiTriangularSolveBackward")
def triangular_solve_backward(grad_x, grad_cloned_mat, x, mat, upper, transpose, unitriangular, *, out):
    """Return the gradients of b and mat by the formula of PyTorch; autograd would need b, which may be missing."""
    grad, grad_mat = torch.zeros_like(x), torch.zeros_like(mat)
    if grad_x is not None:
        adjoint, is_upper = (mat.conj(), upper) if transpose else (mat.mH, not upper)
        grad = torch.linalg.solve_triangular(adjoint, grad_x, upper=is_upper, unitriangular=unitriangular)
        product = -x.conj() @ grad.mT if transpose else -grad @ x.mH
        triangle = product.triu(int(unitriangular)) if upper else product.tril(-int(unitriangular))
        grad_mat = triangle.sum_to_size(mat.shape)
    if grad_cloned_mat is not None:
        grad_mat = grad_mat + grad_cloned_mat.sum_to_size(mat.shape)
    return grad.sum_to_size(out[0].shape if out[0] else grad.shape), grad_mat


@vendor.implements("diopiLinalgQR")
def qr(A, mode):
    """Return Q and R in a mode: "reduced", "complete", or "r" without Q."""
    q, r = torch.linalg.qr(A, mode)
    return q, r


@vendor.implements("diopiCdist")
def cdist(input1, input2, p, compute_mode):
    """Return the p-norm of the difference of each row of input1 and each row of input2."""
    distances: Tensor = torch.ops.aten._cdist_forward(input1, input2, p, compute_mode)
    return distances


@vendor.implements("diopiCdistBackward")
def cdist_backward(grad_output, input1, input2, p, cdist):
    """Return the gradient of input1."""
    cdist = torch.empty_like(grad_output) if cdist is None else cdist  # only if p is 0 or 1
    grad_input: Tensor = torch.ops.aten._cdist_backward(grad_output, input1, input2, p, cdist)
    return grad_input
