"""Operators that functions of the standard serve: the kernel of each overload, made of its line in the table.

One line serves the functional overload, the in-place one, and those that write given tensors. PyTorch itself says which
results there are; the function writes them into memory made for them. What the vendor does not serve falls back to the
CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import torch
from torch._decomp import decomposition_table

from diopi_proto import parameters as kinds
from diopi_proto.aten.mapping import RULES, FunctionCall, NotMappedError, Operator
from diopi_proto.aten.table import DECOMPOSED, Row, form_of, row_of, rows
from diopi_torch import dump
from diopi_torch.attention import FAST_PATHS
from diopi_torch.fallback import fall_back, operator_name
from diopi_torch.functions import DeviceMaker, NotServedError, Operand, check_has, operand, perform
from diopi_torch.plans import planned_calls
from diopi_torch.recurrent import CELLS
from diopi_torch.shapes import Spec, UnknownShapesError, specs_of
from diopi_torch.tensors import DTYPES, new

LEFT_OUT: Mapping[str, str] = {
    "_to_copy": "PyTorch composes it of making memory and copying",
    "clone": "PyTorch composes it of making memory and copying",
    "copy_": "a kernel of every device calls it",
}
"""Operators in the table for which no kernel is made of it, and why."""


def serve(name: str, named: Mapping[str, Any], returned: Sequence[Any], *, inplace: bool = False) -> list[Any]:
    """Do what an operator does, by calls of functions; the results that the vendor made, in order.

    Args:
        name: of the operator.
        named: its arguments by name.
        returned: the tensors that take its results.
        inplace: whether it writes its first argument, by a function that does so too.

    NotServedError if the standard or the vendor lacks something for it. No result was written then.
    """
    row = row_of(name)
    if row is None:
        raise NotServedError(f"{name} is in no line of the table")
    first = next((tensor for tensor in returned if isinstance(tensor, torch.Tensor)), None)
    maker = DeviceMaker(None if first is None else first.dtype)
    operator = Operator(name, {key: _operands(value) for key, value in named.items()}, inplace, maker)
    try:
        calls = planned_calls(operator, row, [_operands(value) for value in returned])
    except NotMappedError as error:
        raise NotServedError(str(error)) from None
    check_has([call.function for call in calls])
    made: list[Any] = []
    overwrote = False
    for call in calls:
        apart = _results_apart(call)
        try:
            there = replace(call, results={**call.results, **apart}) if apart else call
            made.extend(perform(there).values())
        except NotServedError as error:
            if overwrote:
                raise RuntimeError(f"{name} was served in part: {error}") from error
            raise
        for result, value in apart.items():
            call.results[result].tensor.copy_(value.tensor)
        overwrote |= inplace or bool(apart)
    return made


def _operands(value: Any) -> Any:
    """A value with its tensors as the standard sees them."""
    if isinstance(value, torch.Tensor):
        return operand(value)
    return [_operands(entry) for entry in value] if isinstance(value, list | tuple) else value


def _results_apart(call: FunctionCall) -> Mapping[str, Operand]:
    """Memory for results that are in the memory of an argument: functions may read after they wrote."""
    read = {_storage(one) for value in call.arguments.values() for one in _as_list(value) if isinstance(one, Operand)}
    return {
        name: Operand(new(value.shape, value.tensor.dtype))
        for name, value in call.results.items()
        if isinstance(value, Operand) and _storage(value) in read
    }


def _storage(tensor: Operand) -> int:
    return tensor.tensor.untyped_storage().data_ptr()


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


@dataclass(frozen=True)
class Kernel:
    """The kernel of one overload.

    Attributes:
        operator: the overload.
        row: the operator whose line in the table serves it.
    """

    operator: torch._ops.OpOverload
    row: Row

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the operator does. Raises as PyTorch does for arguments that don't suit, or the vendor's error."""
        if dump.KEY in dump.environment:
            return dump.dumped(
                operator_name(self.operator), self.operator, args, kwargs, lambda: self._done(args, kwargs)
            )
        return self._done(args, kwargs)

    def _done(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            return self.served({**self._defaults, **dict(zip(self._names, args, strict=False)), **kwargs})
        except (NotServedError, UnknownShapesError):
            return fall_back(self.operator, *args, **kwargs)

    def served(self, named: Mapping[str, Any]) -> Any:
        """Do it by functions, with all arguments by name; NotServedError or UnknownShapesError if they can't."""
        if self._makes_results:
            made = serve(self.row.operator, named, [])
            return made[0] if len(made) == 1 else tuple(made)
        specs = specs_of(self.operator, named, self._outputs)
        if self._outputs:
            return self._into_outputs(named, _as_list(specs))
        if self.operator._schema.is_mutable:
            return self._in_place(named)
        returned = _memory(specs)
        serve(self.row.operator, named, _as_list(returned))
        return returned

    def _into_outputs(self, named: Mapping[str, Any], specs: Sequence[Spec]) -> Any:
        """Write given tensors, resized first where that is due."""
        outputs = [named[name] for name in self._outputs]
        for out, spec in zip(outputs, specs, strict=True):
            torch.ops.aten._resize_output_(out, list(spec.shape), out.device)
        serve(self.row.operator, named, outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _in_place(self, named: Mapping[str, Any]) -> Any:
        """Write the first argument, by a function that does so if there is one."""
        name = operator_name(self.operator)
        target = next(iter(named.values()))
        returned = [target] if isinstance(target, torch.Tensor) else [None]
        try:
            serve(name, named, returned, inplace=True)
        except NotServedError:
            if name == self.row.operator:
                raise
            serve(self.row.operator, named, _as_list(target))
        return target if self.operator._schema.returns else None

    @cached_property
    def _names(self) -> Sequence[str]:
        return [argument.name for argument in self.operator._schema.arguments]

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        declared = self.operator._schema.arguments
        return {argument.name: argument.default_value for argument in declared}

    @cached_property
    def _outputs(self) -> Sequence[str]:
        """The arguments that are given to be written."""
        return written_outputs(self.operator)

    @cached_property
    def _makes_results(self) -> bool:
        """Whether the vendor decides the sizes of the results, or gives numbers."""
        plain = form_of(self.row.function, inplace=False, scalar=False)
        return plain is not None and not any(
            issubclass(p.annotation, kinds.Out | kinds.Outs | kinds.InOut | kinds.InOuts) for p in plain.results
        )


class UniqueKernel(Kernel):
    """The kernel of an operator that gives the distinct elements, or slices across an axis.

    The vendor makes them, and how often they are there; the device makes where each element is among them. Of what is
    not wanted there is an empty tensor, but across an axis PyTorch gives all.
    """

    def served(self, named: Mapping[str, Any]) -> Any:
        shape, axis = named["self"].shape, named.get("dim")
        wants = {name: axis is not None or named[name] for name in ("return_inverse", "return_counts")}
        inverse = new(shape if axis is None else (shape[axis],), torch.int64) if wants["return_inverse"] else None
        values, counts = serve(self.row.operator, {**named, **wants}, [None, inverse])
        return values, *(new((0,), torch.int64) if one is None else one for one in (inverse, counts))


def _memory(specs: Any) -> Any:
    """Tensors of the device as PyTorch wants them."""
    if isinstance(specs, list | tuple):
        return type(specs)([_memory(spec) for spec in specs])
    if specs is None:
        return None
    if specs.dtype not in DTYPES:
        raise NotServedError(f"{specs.dtype} is no element type of the standard")
    return new(specs.shape, specs.dtype, specs.strides)


def written_outputs(operator: torch._ops.OpOverload) -> Sequence[str]:
    """The arguments of an operator that are given to be written, and hold nothing yet."""
    declared = operator._schema.arguments
    return [a.name for a in declared if a.kwarg_only and a.alias_info is not None and a.alias_info.is_write]


def has_kernel(operator: torch._ops.OpOverload, key: str) -> bool:
    """Whether PyTorch has a kernel of an operator for a dispatch key."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator._name, key)


def is_composed(operator: torch._ops.OpOverload) -> bool:
    """Whether PyTorch composes an operator of others above autograd, so that no device sees it.

    Where the CPU has a kernel of its own, there is a gradient too, and a device may have one.
    """
    return has_kernel(operator, "CompositeImplicitAutograd") and not has_kernel(operator, "CPU")


@cache
def kernels() -> Mapping[str, Kernel]:
    """The kernels that the table gives, by the overload's name."""
    found: dict[str, Kernel] = {}
    for row in rows().values():
        if row.function == "diopiUnique":
            found[row.operator] = UniqueKernel(overload(row.operator), row)
        elif row.operator not in LEFT_OUT and (row.function.startswith("diopi") or row.function in RULES):
            for operator in _overloads(overload(row.operator)):
                if not is_composed(operator):
                    name = operator_name(operator)
                    found[name] = Kernel(operator, row_of(name) or row)
    return found


@cache
def decompositions() -> Mapping[str, Callable[..., Any]]:
    """The kernels that make an operator of others, by PyTorch's own decompositions or ours, by the overload's name."""
    decomposed = (overload(row.operator) for row in rows().values() if row.function == DECOMPOSED)
    overloads = (other for one in decomposed for other in _overloads(one))
    known = (one for one in overloads if one in decomposition_table and not is_composed(one))
    return {operator_name(one): decomposition_table[one] for one in known} | {**CELLS, **FAST_PATHS}


def overload(name: str) -> torch._ops.OpOverload:
    """The overload of ATen of this name; AttributeError if there is none."""
    stem, _, suffix = name.partition(".")
    return getattr(getattr(torch.ops.aten, stem), suffix or "default")


_FACTORY_ARGUMENTS = frozenset({"dtype", "layout", "device", "pin_memory"})


def _overloads(operator: torch._ops.OpOverload) -> Iterator[torch._ops.OpOverload]:
    """The overloads that one line serves: the functional one, or the in-place one alone if the line names that.

    What makes memory is left to PyTorch, which fills it by operators of other lines; but for what writes given tensors.
    """
    packet, makes_memory = operator.overloadpacket, "device" in _types(operator)
    if not makes_memory:
        yield operator
    if operator._schema.is_mutable:
        return
    inplace = getattr(getattr(torch.ops.aten, packet.__name__ + "_", None), operator._overloadname, None)
    if inplace is not None:
        yield inplace
    for other in (getattr(packet, name) for name in packet.overloads()):
        if not written_outputs(other) or (makes_memory and has_kernel(other, "CompositeExplicitAutograd")):
            continue
        if _takes_the_same(other, operator):
            yield other


def _takes_the_same(other: torch._ops.OpOverload, operator: torch._ops.OpOverload) -> bool:
    """Whether an overload that writes given tensors takes what another does, but for where memory is made."""
    types, written = _types(operator), written_outputs(other)
    given = {name: kind for name, kind in _types(other).items() if name not in written}
    return given.items() <= types.items() and set(types) - set(given) <= _FACTORY_ARGUMENTS


def _types(operator: torch._ops.OpOverload) -> Mapping[str, str]:
    """The types of an operator's arguments, by name."""
    return {argument.name: str(argument.type) for argument in operator._schema.arguments}
