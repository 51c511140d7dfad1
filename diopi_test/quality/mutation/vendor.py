"""A vendor that is correct except for the defect of one mutant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from diopi_impl import IEEE, BaseVendor, Box, Numerics
from diopi_proto.interface import lookup
from diopi_proto.parameters import OUT_VALUES, Parameter, Role, Workspace
from diopi_proto.types import Error
from diopi_test.cases.layouts import Layout, layout_named
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.arithmetic import deviates, simulate_call
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall, changed_if
from diopi_test.quality.mutation.randomness import draw_with
from lib_rt import Context, Device, Generator, RuntimeFunctions, Tensor
from lib_rt.dtypes import from_numpy


class CaseTakingVendor(BaseVendor):
    """A vendor that receives each case with its expected results, with the defect of a mutant.

    Attributes:
        effect: whether the mutant had an effect since the vendor was created.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(f"mutant: {kind}", "1")
        self._kind = kind
        self._case: BaselineCase | None = None
        self.effect = Effect.not_applicable

    def take_case(self, case: BaselineCase) -> None:
        """Receive the case of the next call."""
        self._case = case

    def has(self, name: str) -> bool:
        """Return True: the vendor has the results of every function."""
        return True

    def last_error(self) -> str:
        """Return an empty message."""
        return ""


class MutantVendor(BaseVendor):
    """A vendor that returns the expected results, corrupted by a mutant.

    If the vendor declares an arithmetic, its results have the declared errors before the mutant corrupts them. The
    effect of the mutant is that on exact results: errors of an arithmetic may change with the order of operations.

    Attributes:
        effect: the effect of the mutant on the calls since the latest case was prepared.
        earlier: the label of the case whose call cached the value that the latest call used.
    """

    def __init__(self, mutant: Mutant, runtime: RuntimeFunctions, numerics: Numerics = IEEE) -> None:
        super().__init__(f"mutant: {mutant.name}", "1", numerics=numerics)
        self._mutant = mutant
        self._runtime = runtime
        self._case: BaselineCase | None = None
        self._call: SimulatedCall | None = None
        self._calls = 0
        self._is_further = False
        self._late: list[Callable[[], None]] = []
        self._corrupt, self._corrupt_inexact = (
            mutant.make_caching() if mutant.make_caching else mutant.corrupt for _ in range(2)
        )
        self._read = mutant.make_stride_caching() if mutant.make_stride_caching else None
        self.effect = Effect.not_applicable
        self.earlier: str | None = None

    def prepare(self, case: BaselineCase) -> bool:
        """Prepare the results of a case, unless they depend on the actual arguments.

        Args:
            case: the case.

        Returns:
            Whether the mutant may affect a call of the case.
        """
        self._case = case
        self._call, self._is_further, self.effect, self.earlier = None, False, Effect.not_applicable, None
        if case.draws or self._mutant.needs_real_call:
            return True
        self._call = SimulatedCall.from_expected(case)
        self._record_effect(self._corrupt(self._call), self._call)
        is_changed = self.effect is Effect.changed
        if deviates(case, self.numerics) and (is_changed or self._mutant.needs_earlier_call):
            self._call = simulate_call(case, self.numerics)
            self._corrupt_inexact(self._call)
        return is_changed

    def has(self, name: str) -> bool:
        """Return whether the case calls the function; the out-of-place form of its function is not available."""
        return self._case is not None and name == self._case.function

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Write the corrupted results of the prepared case."""
        context.stream.synchronize()
        assert self._case is not None, "the case has been prepared"
        call = self._call or self._simulate(self._case, arguments)
        self._is_further = True
        if call.error is not Error.Success:
            return call.error
        pairs = list(zip(lookup(name).parameters[1:], arguments, strict=True))
        for parameter, value in pairs:
            if parameter.is_result and parameter.name in call.results:
                self._write_result(context, parameter, value, call)
        if self._mutant.corrupt_memory is not None:
            values = [value for p, value in pairs if p.role is Role.input and p.annotation is not Workspace]
            inputs = [tensor for value in values for tensor in dense_tensors(value)]
            results = [t for p, value in pairs if p.is_result for t in dense_tensors(value)]
            self._record_effect(self._mutant.corrupt_memory(inputs, results))
        return Error.Success

    def _record_effect(self, effect: Effect, call: SimulatedCall | None = None) -> None:
        """Record the effect of a call."""
        if self.effect is not Effect.changed:
            self.effect, self.earlier = effect, call.earlier if call else None

    def _write_result(self, context: Context, parameter: Parameter, target: Any, call: SimulatedCall) -> None:
        """Write a corrupted result to the caller's tensors or boxes, late if the mutant writes late."""
        arrays = call.results[parameter.name]
        boxes = [box for box in (target if isinstance(target, list) else [target]) if isinstance(box, Box)]
        if boxes:
            for box, array in zip(boxes, arrays, strict=bool(arrays)):
                fill_box(context, parameter, box, array, call)
            return
        for tensor, array in zip(dense_tensors(target), arrays, strict=True):
            values, view = array.reshape(tensor.shape), tensor.view()
            if self._mutant.writes_late:
                self._record_effect(changed_if(view.tobytes() != values.tobytes()))
                self._late.append(partial(np.copyto, view, values))
            else:
                np.copyto(view, values)

    def _synchronize(self, stream: int) -> int | None:
        """Synchronize the stream, then write the postponed results."""
        assert self._runtime.stream_sync is not None
        code = self._runtime.stream_sync(stream)
        while self._late:
            self._late.pop()()
        return code

    def _simulate(self, case: BaselineCase, arguments: Sequence[Any]) -> SimulatedCall:
        """Return a call with the expected or randomly drawn results, corrupted by the mutant."""
        if not case.draws:
            call = simulate_call(case, self.numerics)
            if self._mutant.corrupt_repetition is not None and self._is_further:
                self._record_effect(self._mutant.corrupt_repetition(call))
            if self._read is not None:
                names = [parameter.name for parameter in lookup(case.function).parameters[1:]]
                self._record_effect(self._read(call, dict(zip(names, arguments, strict=True))), call)
            return call
        self._calls += 1
        values = [entry for value in arguments for entry in (value if isinstance(value, list) else [value])]
        generators = [value for value in values if isinstance(value, Generator)]
        call, draw_effect = draw_with(self._mutant, case, generators, self._calls)
        effect = self._corrupt(call)
        self._record_effect(effect if draw_effect is Effect.not_applicable else draw_effect, call)
        return call

    def last_error(self) -> str:
        """Return an empty message."""
        return ""

    def open_device(self) -> Device:
        """Open the host as the device; synchronizing a stream also writes postponed results."""
        return Device(replace(self._runtime, stream_sync=self._synchronize), host_addressable=True)


def fill_box(context: Context, parameter: Parameter, box: Box, array: Array, call: SimulatedCall) -> None:
    """Store a number, or a new tensor, in the box that the call returns it through."""
    if parameter.annotation in OUT_VALUES:
        box.value = array.item()
    else:
        box.value = _create_tensor(context, array, layout_named(call.layouts[parameter.name]))


def _create_tensor(context: Context, array: Array, layout: Layout) -> Tensor:
    """Create a tensor in a context with the elements of an array and a layout."""
    tensor = context.require_tensor(array.shape, from_numpy(array.dtype), layout(array.shape).strides)
    tensor.write(array)
    return tensor


def dense_tensors(value: Any) -> list[Tensor]:
    """Return the dense tensors in a value, including the parts of sparse tensors."""
    tensors = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, Tensor)]
    return [part for tensor in tensors for part in (tensor.parts if tensor.is_sparse else [tensor])]
