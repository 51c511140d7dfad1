"""Run FlagGems, a library of Triton kernels for PyTorch's operators, on the CPU, by Triton's interpreter.

FlagGems 5.0.2 describes the devices of vendors, but not the CPU, and asks the device for its properties when it is
imported. `enable`, which is the argument of `--torch-setup`, adds what is missing before the import. docs/flag_gems.md
explains how to use it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, partial
from hashlib import sha256
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from textwrap import dedent
from types import ModuleType, SimpleNamespace
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it when a kernel is defined
os.environ["GEMS_VENDOR"] = "nvidia"  # the description of a device that is replaced here

import numpy as np
import torch
import triton
import triton.language as tl
from scipy import special
from triton.runtime import interpreter
from triton.runtime.interpreter import FunctionRewriter, GridExecutor, InterpretedFunction, TensorHandle
from typing_extensions import override

Array = np.ndarray[Any, Any]

DESCRIPTION = "_nvidia"
"""The name of the module of the library that describes the device."""


def enable() -> None:
    """Import the library for the CPU, and replace PyTorch's operators on the CPU by its kernels.

    Kernels that draw random numbers are left out, because they read the state of a GPU's generator.
    """
    library = import_for_cpu()
    kernels = {kernel.__name__: kernel for _, kernel, *_ in library._FULL_CONFIG}
    library.enable(
        unused=[name for name, kernel in kernels.items() if "philox_backend_seed_offset" in kernel.__globals__]
    )


@cache
def import_for_cpu() -> Any:
    """Import the library as if the CPU were one of its devices, and return it.

    Raises:
        ImportError: The library is not installed.
    """
    spec = find_spec("flag_gems")
    if spec is None or spec.origin is None or spec.loader is None:
        raise ImportError("flag_gems is not installed: pip install --no-deps flag_gems==5.0.2")
    answer_questions_about_the_device()
    sys.modules[DESCRIPTION] = describe_cpu(Path(spec.origin).parent / "runtime" / "backend" / DESCRIPTION)
    sys.modules["triton.language.extra.cpu.libdevice"] = mathematical_functions()
    complete_interpreted_functions()
    accept_loop_bounds()
    combine_elements()
    pass_tensors_unchanged()
    library = sys.modules["flag_gems"] = module_from_spec(spec)
    use_fixed_configurations()  # before the library defines its kernels
    spec.loader.exec_module(library)
    return library


def answer_questions_about_the_device() -> None:
    """Add the functions to `torch.cpu` and `torch.cuda` that the library calls to choose sizes of blocks."""
    properties = SimpleNamespace(multi_processor_count=1, L2_cache_size=1 << 20)
    for module in (torch.cpu, torch.cuda):
        module.get_device_properties = lambda device=None: properties
        module.get_device_capability = lambda device=None: (0, 0)
        module.current_device = lambda: 0
    torch.cpu.device = lambda device: nullcontext()
    importlib.import_module("torch.backends.cpu")


def describe_cpu(folder: Path) -> ModuleType:
    """Return a description of the CPU as a device of the library.

    Args:
        folder: the folder of a device whose kernels and configurations serve the CPU.
    """
    module = ModuleType(DESCRIPTION)
    module.__path__ = [str(folder)]
    module.vendor_info = SimpleNamespace(
        vendor_name="nvidia", device_name="cpu", device_query_cmd="true", dispatch_key="CPU", triton_extra_name="cpu"
    )
    module.CUSTOMIZED_UNUSED_OPS = ()
    return module


def use_fixed_configurations() -> None:
    """Let each kernel use the first of its configurations, whose times can't be measured by the interpreter."""
    importlib.import_module("flag_gems.utils")
    autotune = triton.autotune

    def use_first(configs: Sequence[Any], key: Sequence[str], **options: Any) -> Callable[[Any], Any]:
        """Return a decorator of a kernel, in place of the one that measures configurations."""
        return autotune(configs=list(configs)[:1], key=key)

    triton.autotune = use_first
    sys.modules["flag_gems.utils.pointwise_dynamic"].JITFunction = InterpretedFunction
    for module in (sys.modules["flag_gems.utils"], sys.modules["flag_gems.utils.libentry"]):
        module.libtuner = use_first
        module.libentry = lambda: lambda kernel: kernel  # the original keeps compiled kernels


def complete_interpreted_functions() -> None:
    """Give interpreted kernels the attributes of compiled ones from which the library generates code."""
    initialize = InterpretedFunction.__init__

    def initialize_with_source(self: Any, function: Callable[..., Any], **options: Any) -> None:
        """Create the interpreted kernel of a function."""
        initialize(self, function, **options)
        source = dedent(inspect.getsource(function))
        self.src = source[source.index("def ") :]  # without decorators
        self.cache_key = sha256(source.encode()).hexdigest()
        self.__module__, self.__globals__ = function.__module__, function.__globals__
        function.__globals__.setdefault("tl", tl)  # the interpreter expects it in the module of each kernel

    InterpretedFunction.__init__ = initialize_with_source


def accept_loop_bounds() -> None:
    """Let the interpreter read the bounds of loops, which are arrays with one element, with NumPy 2.4 and later."""
    patch = interpreter._patch_lang_tensor

    def patch_with_bounds(tensor: Any) -> None:
        """Add the interpreter's methods to a class of tensors."""
        patch(tensor)
        tensor.__index__ = lambda self: self.handle.data.item()

    interpreter._patch_lang_tensor = patch_with_bounds


class LogicalOperators(interpreter.ASTTransformer):
    """A rewriter of kernels in which `and` and `or` combine the elements of tensors, as in compiled kernels.

    In Python, they would select one of the operands.
    """

    @override
    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Return an assignment with its expression rewritten, which the interpreter's rewriter leaves as it is."""
        node.value = self.visit(node.value)
        return super().visit_Assign(node)

    @override
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Return `combine_and(a, lambda: b)` for `a and b`, and likewise for `or`."""
        self.generic_visit(node)
        name = "combine_and" if isinstance(node.op, ast.And) else "combine_or"
        combined, *later_values = node.values
        for value in later_values:
            late = ast.Lambda(args=ast.arguments([], [], None, [], [], None, []), body=value)
            combined = ast.Call(ast.Name(name, ast.Load()), [combined, late], [])
        return combined


def combine_and(operand: Any, evaluate: Callable[[], Any]) -> Any:
    """Return `operand and evaluate()`, by element if `operand` is a tensor."""
    return (operand != 0) & (evaluate() != 0) if isinstance(operand, tl.tensor) else operand and evaluate()


def combine_or(operand: Any, evaluate: Callable[[], Any]) -> Any:
    """Return `operand or evaluate()`, by element if `operand` is a tensor."""
    return (operand != 0) | (evaluate() != 0) if isinstance(operand, tl.tensor) else operand or evaluate()


def combine_elements() -> None:
    """Let the interpreter rewrite logical operators of kernels."""
    FunctionRewriter.ast_transformer = LogicalOperators()
    interpreter.combine_and, interpreter.combine_or = combine_and, combine_or  # kernels get all names of its module


def pass_tensors_unchanged() -> None:
    """Let the interpreter read arguments where they are.

    It copies arguments to the CPU, which is not necessary here, and fails for the library's own classes of tensors.
    """
    GridExecutor._init_args_hst = lambda self, arguments, named: (arguments, named)
    GridExecutor._restore_args_dev = lambda self, *arguments: None


def mathematical_functions() -> ModuleType:
    """Return a replacement of Triton's `libdevice`, a library for GPUs, with functions of NumPy and SciPy."""
    module = ModuleType("libdevice")
    for name, function in FUNCTIONS.items():
        setattr(module, name, partial(compute, function, None))
    for name, function in PREDICATES.items():
        setattr(module, name, partial(compute, function, tl.int32))
    return module


def compute(function: Callable[..., Any], result_type: tl.dtype | None, *operands: Any) -> tl.tensor:
    """Return the results of an elementwise function for tensors of the interpreter.

    Args:
        function: a function of NumPy's arrays.
        result_type: the element type of the results; None for that of the first tensor.
        operands: tensors and numbers, at least one of them a tensor.
    """
    tensors = [operand for operand in operands if isinstance(operand, tl.tensor)]
    arrays = [operand.handle.data if isinstance(operand, tl.tensor) else float(operand) for operand in operands]
    element_type, dtype = (result_type, np.int32) if result_type else (tensors[0].dtype, tensors[0].handle.data.dtype)
    with np.errstate(all="ignore"):
        results = np.asarray(function(*arrays)).astype(dtype)
    block = next((tensor.type for tensor in tensors if tensor.type.is_block()), None)
    return tl.tensor(
        TensorHandle(results, element_type),
        tl.block_type(element_type, list(results.shape)) if block else element_type,
    )


def divide_toward_zero(x: Array, y: Array) -> Array:
    """Return quotients that are rounded toward zero."""
    quotients = np.divide(x, y)
    is_too_large = np.abs(quotients) > np.abs(np.divide(x, y, dtype=np.longdouble))
    return np.where(is_too_large, np.nextafter(quotients, np.zeros_like(quotients)), quotients)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "div_rn": np.divide,
    "div_rz": divide_toward_zero,
    "erf": special.erf,
    "exp": np.exp,
    "exp2": np.exp2,
    "fmod": np.fmod,
    "log": np.log,
    "pow": np.power,
    "rint": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
"""The functions of `libdevice` that the library calls."""

PREDICATES: Mapping[str, Callable[..., Any]] = {
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
}
"""The functions of `libdevice` that return 1 or 0."""
