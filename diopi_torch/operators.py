"""Kernels of operators that functions of the standard implement, each derived from its line in the table.

One line describes the functional overload, the in-place overload and overloads with output arguments. PyTorch
determines the form of the results; the function writes them into newly allocated memory. Calls that the vendor does not
support fall back to the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import torch
from torch._decomp import decomposition_table

from diopi_proto import parameters as kinds
from diopi_proto.aten.mapping import AtenOperator
from diopi_proto.aten.table import DECOMPOSED, Row, find_row, rows
from diopi_proto.aten.table import find_form as form_of_function
from diopi_torch import dump
from diopi_torch.attention import FAST_PATHS
from diopi_torch.backend import backend
from diopi_torch.conjugation import call_materialized, receives_lazy_bits
from diopi_torch.fallback import check_on_cpu, default_arguments, operator_name, run_on_cpu
from diopi_torch.forms import describe_form, describe_sharing, find_shared_memory
from diopi_torch.functions import CallFailedError, UnsupportedCallError
from diopi_torch.layout import TensorLayout, contiguous_strides, layout_of
from diopi_torch.overlap import find_overlap
from diopi_torch.plans import Plan, PlanBuilder, UnsupportedForm, cache_plan
from diopi_torch.preconditions import PRECONDITIONS, Precondition
from diopi_torch.recurrent import CELLS
from diopi_torch.sdpa import ABOVE_AUTOGRAD
from diopi_torch.shapes import infer_layouts
from diopi_torch.synchronized import SYNCHRONIZED
from diopi_torch.tensors import has_lazy_bits

EXCLUDED_OPERATORS: Mapping[str, str] = {
    "_to_copy": "PyTorch composes it of allocating memory and copying",
    "clone": "PyTorch composes it of allocating memory and copying",
    "copy_": "a kernel of every device calls it",
}
"""Operators in the table for which no kernel is derived, with the reason."""


@dataclass(frozen=True, eq=False)
class OperatorKernel:
    """The kernel of one overload of an operator, derived from a line of the table of operators.

    Attributes:
        operator: the overload.
        row: the line in the table that describes it.
    """

    operator: torch._ops.OpOverload
    row: Row

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; raise the errors of PyTorch's CPU for invalid arguments, and errors of the vendor."""
        try:
            if dump.KEY in dump.environment:
                return dump.call_and_dump(
                    self._name, self.operator, args, kwargs, lambda: self.run_with_functions(args, kwargs)
                )
            return self.run_with_functions(args, kwargs)
        except UnsupportedCallError as error:
            return run_on_cpu(str(error), self.operator, args, kwargs)
        except CallFailedError:
            check_on_cpu(self.operator, args, kwargs)
            raise

    def run_with_functions(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the results of the operator, run with functions; raise UnsupportedCallError if that is impossible."""
        if self._receives_lazy_bits and any(map(has_lazy_bits, (*args, *kwargs.values()))):
            return call_materialized(self.operator, self.run_with_functions, args, kwargs)
        if self._precondition is not None and not self._precondition(self.arguments_by_name(args, kwargs)):
            check_on_cpu(self.operator, args, kwargs)
        tensors: list[Any] = []
        form = describe_form(args, tensors)
        if kwargs:
            form += [*kwargs, *describe_form(kwargs.values(), tensors)]
        if self._writes:
            form.append(describe_sharing(tensors))
        device, key = backend(), (self, torch.get_default_dtype(), *form)
        plan = device.plans.get(key)
        if plan is None:
            if self._outputs and self._resize_outputs(args, kwargs, tensors):
                return self.run_with_functions(args, kwargs)
            plan = self._find_plan(key, args, kwargs, tensors)
        return plan.run(tensors, device)

    def _resize_outputs(self, args: Sequence[Any], kwargs: Mapping[str, Any], tensors: Sequence[Any]) -> bool:
        """Resize the output arguments to the sizes of the results; return whether any size changed."""
        named = self.arguments_by_name(*_replace_by_slots(PlanBuilder(tensors, range(len(tensors))), args, kwargs))
        layouts = _as_sequence(infer_layouts(self.operator, named, self._outputs))
        pairs = [(named[name], layout) for name, layout in zip(self._outputs, layouts, strict=True)]
        resized = [(slot, layout) for slot, layout in pairs if slot.shape != layout.shape]
        if resized and find_overlap(self.operator, self.arguments_by_name(args, kwargs)):
            check_on_cpu(self.operator, args, kwargs)  # later, the resized tensors do not overlap
        for slot, layout in resized:
            self._resize_output(tensors[slot.number], layout.shape)
        return bool(resized)

    def _resize_output(self, out: torch.Tensor, size: Sequence[int]) -> None:
        """Resize an output argument; issue PyTorch's warning if it is not empty."""
        torch.ops.aten._resize_output_(out, list(size), out.device)

    def _find_plan(
        self, form: Hashable, args: Sequence[Any], kwargs: Mapping[str, Any], tensors: Sequence[Any]
    ) -> Plan | UnsupportedForm:
        """Return the plan for calls of this form."""
        if self._writes and (overlap := find_overlap(self.operator, self.arguments_by_name(args, kwargs))):
            check_on_cpu(self.operator, args, kwargs)
            if overlap.within_tensor:
                cache_plan(form, UnsupportedForm("several elements of a written tensor are at one address"))
                return backend().plans[form]
        if self._outputs and self._converts_outputs(args, kwargs, tensors):
            check_on_cpu(self.operator, args, kwargs)
        plan_or_reason: Plan | UnsupportedForm | None = None
        is_reusable = True
        for inplace in self._inplace_choices:
            builder = PlanBuilder(tensors, find_shared_memory(tensors) if self._writes else range(len(tensors)))
            try:
                plan = self._build_plan(
                    builder, self.arguments_by_name(*_replace_by_slots(builder, args, kwargs)), inplace
                )
                plan_or_reason = replace(plan, fallback=plan_or_reason if isinstance(plan_or_reason, Plan) else None)
            except UnsupportedCallError as error:
                plan_or_reason = plan_or_reason or UnsupportedForm(str(error))
            is_reusable = is_reusable and builder.is_reusable
        assert plan_or_reason is not None
        if is_reusable:
            cache_plan(form, plan_or_reason)
        return plan_or_reason

    def _converts_outputs(self, args: Sequence[Any], kwargs: Mapping[str, Any], tensors: Sequence[Any]) -> bool:
        """Return whether an output argument has another element type than the result, which operators may reject.

        Also return True if PyTorch can't determine the element type of the result.
        """
        slots = self.arguments_by_name(*_replace_by_slots(PlanBuilder(tensors, range(len(tensors))), args, kwargs))
        outputs = [slots.pop(name) for name in self._outputs]
        try:
            results = _as_sequence(infer_layouts(overload(self.row.operator), slots))
        except UnsupportedCallError:
            return True
        return [slot.layout.torch_dtype for slot in outputs] != [layout.torch_dtype for layout in results]

    def _build_plan(self, builder: PlanBuilder, named: Mapping[str, Any], inplace: bool) -> Plan:
        """Return a new plan; `inplace` selects functions that write their first argument."""
        name = self._name if inplace else self.row.operator
        operator = AtenOperator(name=name, arguments=named, inplace=inplace, factory=builder)
        if self._vendor_allocates_results:
            return builder.build(
                operator, self.row, [], lambda results: results[0] if len(results) == 1 else tuple(results)
            )
        if self._is_inplace:
            infer_layouts(self.operator, named)  # checks the arguments
            target = next(iter(named.values()))
            builder.check_written(_as_sequence(target))
            results = [None] if inplace and isinstance(target, list) else _as_sequence(target)
            return builder.build(operator, self.row, results, lambda results: target if self._returns else None)
        if self._outputs:
            outputs = [named[name] for name in self._outputs]
            builder.check_written(outputs)
            return builder.build(
                operator, self.row, outputs, lambda results: outputs[0] if len(outputs) == 1 else tuple(outputs)
            )
        returned = _result_slots(builder, infer_layouts(self.operator, named))
        return builder.build(operator, self.row, _as_sequence(returned), lambda results: returned)

    def arguments_by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name, including default values."""
        return {**self._defaults, **dict(zip(self._defaults, args, strict=False)), **kwargs}

    @cached_property
    def _name(self) -> str:
        """The name of the operator."""
        return operator_name(self.operator)

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        """The default values of the arguments, by name."""
        return default_arguments(self.operator)

    @cached_property
    def _outputs(self) -> Sequence[str]:
        """The names of the output arguments."""
        return written_outputs(self.operator)

    @cached_property
    def _writes(self) -> bool:
        """Whether the operator writes any argument."""
        return self.operator._schema.is_mutable

    @cached_property
    def _is_inplace(self) -> bool:
        """Whether the operator writes its first argument."""
        return self._writes and not self._outputs and not self._vendor_allocates_results

    @cached_property
    def _inplace_choices(self) -> Sequence[bool]:
        """The values of `inplace` to try when planning; the preferred one comes last."""
        if not self._is_inplace:
            return (False,)
        return (True,) if self._name == self.row.operator else (False, True)

    @cached_property
    def _precondition(self) -> Precondition | None:
        """A condition that valid calls meet and the vendor does not check; None if there is none."""
        return PRECONDITIONS.get(self.row.operator)

    @cached_property
    def _receives_lazy_bits(self) -> bool:
        """Whether the operator may receive tensors that PyTorch has yet to conjugate or negate."""
        return receives_lazy_bits(self.operator)

    @cached_property
    def _returns(self) -> bool:
        """Whether the operator returns a value."""
        return bool(self.operator._schema.returns)

    @cached_property
    def _vendor_allocates_results(self) -> bool:
        """Whether the vendor decides the sizes of the results or returns numbers."""
        plain = form_of_function(self.row.function, inplace=False, scalar=False)
        return plain is not None and not any(
            issubclass(p.annotation, kinds.Out | kinds.Outs | kinds.InOut | kinds.InOuts) for p in plain.results
        )


class SequenceKernel(OperatorKernel):
    """The kernel of an operator that fills its output argument with a sequence of numbers.

    PyTorch retains the shape of an output argument with the right number of elements, and resizes any other one without
    a warning. Functions write tensors with one axis.
    """

    def run_with_functions(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the output argument, filled by functions.

        If it has another number of axes than a sequence, it receives a copy.
        """
        out = kwargs["out"]
        if out.dim() == 1:
            return super().run_with_functions(args, kwargs)
        sequence = super().run_with_functions(
            args, {**kwargs, "out": torch.empty(0, dtype=out.dtype, device=out.device)}
        )
        if out.numel() != sequence.numel():
            out.resize_(sequence.shape)
        return out.copy_(sequence.view(out.shape))

    def _resize_output(self, out: torch.Tensor, size: Sequence[int]) -> None:
        """Resize an output argument without a warning."""
        out.resize_(size)


class UniqueKernel(OperatorKernel):
    """The kernel of an operator that returns the distinct elements, or the distinct slices along an axis.

    The vendor allocates the distinct elements and their counts; the device allocates the positions. Results that are
    not requested are empty tensors, but along an axis PyTorch returns all results.
    """

    def _build_plan(self, builder: PlanBuilder, named: Mapping[str, Any], inplace: bool) -> Plan:
        """Return a plan in which the vendor allocates the distinct elements and, if requested, the counts."""
        shape, axis = named["self"].shape, named.get("dim")
        is_requested = {name: axis is not None or named[name] for name in ("return_inverse", "return_counts")}
        places = shape if axis is None else (shape[axis],)
        inverse = builder.add_result(layout_of(places, contiguous_strides(places), torch.int64))
        empty_result = builder.add_result(layout_of((0,), (1,), torch.int64))
        operator = AtenOperator(
            name=self.row.operator, arguments={**named, **is_requested}, inplace=False, factory=builder
        )
        return builder.build(
            operator,
            self.row,
            [None, inverse if is_requested["return_inverse"] else None],
            lambda results: (
                results[0],
                inverse if is_requested["return_inverse"] else empty_result,
                results[1] if is_requested["return_counts"] else empty_result,
            ),
        )


def _replace_by_slots(
    builder: PlanBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments with slots in place of tensors."""
    return [builder.replace_by_slots(value) for value in args], {
        name: builder.replace_by_slots(value) for name, value in kwargs.items()
    }


def _result_slots(builder: PlanBuilder, layouts: Any) -> Any:
    """Return slots for the returned tensors; numbers are unchanged."""
    if isinstance(layouts, list | tuple):
        return type(layouts)([_result_slots(builder, layout) for layout in layouts])
    return builder.add_result(layouts) if isinstance(layouts, TensorLayout) else layouts


def _as_sequence(value: Any) -> Sequence[Any]:
    """Return a list or tuple unchanged, and any other value as a list with one element."""
    return value if isinstance(value, list | tuple) else [value]


def written_outputs(operator: torch._ops.OpOverload) -> Sequence[str]:
    """Return the names of an operator's output arguments, such as `out`, whose previous contents are not used."""
    declared = operator._schema.arguments
    return [a.name for a in declared if a.kwarg_only and a.alias_info is not None and a.alias_info.is_write]


def has_kernel(operator: torch._ops.OpOverload, key: str) -> bool:
    """Return whether PyTorch has a kernel of an operator for a dispatch key."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator._name, key)


def is_composed(operator: torch._ops.OpOverload) -> bool:
    """Return whether PyTorch composes an operator of others above autograd, so that its calls never reach a device.

    If the CPU has a kernel for the operator, there is also a gradient, and a device may have a kernel, too.

    Args:
        operator: the operator.

    Returns:
        Whether the operator is composed.
    """
    return has_kernel(operator, "CompositeImplicitAutograd") and not has_kernel(operator, "CPU")


def returns_view(operator: torch._ops.OpOverload) -> bool:
    """Return whether an operator returns a view of an argument that it does not write, such as `select` and `detach`.

    Args:
        operator: the operator.

    Returns:
        Whether the schema declares such a view.
    """
    aliases = [returned.alias_info for returned in operator._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


_SEQUENCES = ("diopiArange", "diopiLinspace")
"""Functions whose operators PyTorch composes of allocating memory and filling it with a sequence of numbers."""


@cache
def kernels() -> Mapping[str, OperatorKernel]:
    """Return the kernels that the table describes, by the overload's name."""
    by_name: dict[str, OperatorKernel] = {}
    for row in rows().values():
        if row.function == "diopiUnique":
            by_name[row.operator] = UniqueKernel(overload(row.operator), row)
        elif row.operator not in EXCLUDED_OPERATORS and row.calls_functions:
            for operator in _overloads(overload(row.operator)):
                if not is_composed(operator):
                    name = operator_name(operator)
                    kernel = SequenceKernel if row.function in _SEQUENCES else OperatorKernel
                    by_name[name] = kernel(operator, find_row(name) or row)
    return by_name


@cache
def decompositions() -> Mapping[str, Callable[..., Any]]:
    """Return the kernels that decompose an operator into other operators, by the overload's name."""
    decomposed = (overload(row.operator) for row in rows().values() if row.function == DECOMPOSED)
    overloads = (overload for packet in decomposed for overload in _overloads(packet))
    known = (overload for overload in overloads if overload in decomposition_table and not is_composed(overload))
    return {operator_name(overload): decomposition_table[overload] for overload in known} | {
        **CELLS,
        **ABOVE_AUTOGRAD,
        **FAST_PATHS,
        **SYNCHRONIZED,
    }


def overload(name: str) -> torch._ops.OpOverload:
    """Return the overload of ATen with this name; raise AttributeError if there is none."""
    stem, _, suffix = name.partition(".")
    return getattr(getattr(torch.ops.aten, stem), suffix or "default")


_FACTORY_ARGUMENTS = frozenset({"dtype", "layout", "device", "pin_memory"})
"""The arguments of operators that allocate memory."""


def _overloads(operator: torch._ops.OpOverload) -> Iterator[torch._ops.OpOverload]:
    """Yield the overloads that one line describes: the functional one, or only the in-place one if the line names it.

    Overloads that allocate memory are left to PyTorch, which fills the memory with operators of other lines. Overloads
    with output arguments are included.

    Args:
        operator: the operator of the line.

    Yields:
        The overloads.
    """
    packet, allocates_memory = operator.overloadpacket, "device" in _argument_types(operator)
    if not allocates_memory:
        yield operator
    if operator._schema.is_mutable:
        return
    inplace = getattr(getattr(torch.ops.aten, packet.__name__ + "_", None), operator._overloadname, None)
    if inplace is not None:
        yield inplace
    for overload in (getattr(packet, name) for name in packet.overloads()):
        if not written_outputs(overload) or (allocates_memory and has_kernel(overload, "CompositeExplicitAutograd")):
            continue
        if _has_same_inputs(overload, operator):
            yield overload


def _has_same_inputs(overload: torch._ops.OpOverload, operator: torch._ops.OpOverload) -> bool:
    """Return whether an overload with output arguments has the same inputs as another, except allocation options."""
    types, written = _argument_types(operator), written_outputs(overload)
    inputs = {name: kind for name, kind in _argument_types(overload).items() if name not in written}
    return inputs.items() <= types.items() and set(types) - set(inputs) <= _FACTORY_ARGUMENTS


def _argument_types(operator: torch._ops.OpOverload) -> Mapping[str, str]:
    """Return the types of an operator's arguments by name."""
    return {argument.name: str(argument.type) for argument in operator._schema.arguments}


COPY = OperatorKernel(torch.ops.aten.copy_.default, rows()["copy_"])
"""The kernel that copies on the device."""
