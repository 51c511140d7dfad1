"""The vendors of mutation testing: each returns correct results, except for the one defect that a mutant describes.

A vendor never computes an operator. It gets each case with its expected results, changes these as the mutant says, and
writes them to the caller's memory.
"""

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
    """The common part of the vendors with a defect of concurrency (`in_flight.py`) or endurance (`soak.py`).

    The suite gives such a vendor each case, including the expected results, before it calls the function of the case.

    Attributes:
        effect: the effect of the defect on all calls since the vendor was created. Subclasses update it.

    Args:
        kind: the kind of the defect, which becomes the vendor's name in reports.
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
        """Return True: the expected results serve every function."""
        return True

    def last_error(self) -> str:
        """Return an empty message."""
        return ""


class MutantVendor(BaseVendor):
    """A vendor that writes the expected results of a case after a mutant has corrupted them.

    The numerics of the vendor, such as products in TF32, add their errors to the expected results first. `prepare`
    decides the effect of a mutant by its corruption of the exact results all the same, because two calls of correct
    numerics can differ too.

    Attributes:
        effect: the effect of the mutant on the calls since the latest `prepare`.
        earlier: for a mutant that keeps values between calls, the label of the earlier case whose value was used.

    Args:
        mutant: the defect.
        runtime: the functions for memory and streams.
        numerics: the arithmetic that the vendor declares and has.
    """

    def __init__(self, mutant: Mutant, runtime: RuntimeFunctions, numerics: Numerics = IEEE) -> None:
        super().__init__(f"mutant: {mutant.name}", "1", numerics=numerics)
        self._mutant = mutant
        self._runtime = runtime
        self._case: BaselineCase | None = None
        self._call: SimulatedCall | None = None
        self._calls = 0
        self._is_repeated = False
        self._late: list[Callable[[], None]] = []
        self._corrupt, self._corrupt_inexact = (
            mutant.make_caching() if mutant.make_caching else mutant.corrupt for _ in range(2)
        )
        self._cache_strides = mutant.make_stride_caching() if mutant.make_stride_caching else None
        self.effect = Effect.not_applicable
        self.earlier: str | None = None

    def prepare(self, case: BaselineCase) -> bool:
        """Prepare the corrupted results of a case.

        Nothing is prepared if they depend on the actual arguments: for a function that draws random numbers, and for a
        mutant that only a real call reveals, such as one that writes to the memory of inputs. `call` creates them then.

        Args:
            case: the case that is called next.

        Returns:
            True if the call of the case is needed: the corrupted results are wrong, or they are not known yet.
        """
        self._case = case
        self._call, self._is_repeated, self.effect, self.earlier = None, False, Effect.not_applicable, None
        if case.draws or self._mutant.needs_real_call:
            return True
        self._call = SimulatedCall.from_expected(case)
        self._record_effect(self._corrupt(self._call), self._call)
        is_changed = self.effect is Effect.changed
        caches = self._mutant.needs_earlier_call and not self.numerics.is_ieee
        if caches or (is_changed and deviates(case, self.numerics)):  # a cached value may be that of an exact case
            self._call = simulate_call(case, self.numerics)
            self._corrupt_inexact(self._call)
        return is_changed

    def has(self, name: str) -> bool:
        """Return whether the prepared case calls the function. The vendor has no other function."""
        return self._case is not None and name == self._case.function

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Write the corrupted results of the prepared case, and corrupt the caller's memory if the mutant does so.

        Args:
            name: the function.
            context: the context of the call.
            arguments: the arguments after the context.

        Returns:
            The error code that the case expects, usually `Success`.
        """
        context.stream.synchronize()
        assert self._case is not None, "the case has been prepared"
        call = self._call or self._simulate(self._case, arguments)
        self._is_repeated = True
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
        """Record an effect and the call that `call` got a cached value from, unless an earlier effect was `changed`."""
        if self.effect is not Effect.changed:
            self.effect, self.earlier = effect, call.earlier if call else None

    def _write_result(self, context: Context, parameter: Parameter, target: Any, call: SimulatedCall) -> None:
        """Write a corrupted result to the caller's tensors, or store it in boxes.

        If the mutant writes late, the tensors are written when the stream has been synchronized.

        Args:
            context: the context of the call, which owns tensors that the callee allocates.
            parameter: the parameter of the result.
            target: the argument of the caller: a tensor, a box, or a list of them.
            call: the simulated call with the corrupted results.
        """
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
        """Synchronize the stream, then write the postponed results; return the error code of the runtime."""
        assert self._runtime.stream_sync is not None
        code = self._runtime.stream_sync(stream)
        while self._late:
            self._late.pop()()
        return code

    def _simulate(self, case: BaselineCase, arguments: Sequence[Any]) -> SimulatedCall:
        """Return the results of a call that `prepare` left to the actual arguments.

        Random results are drawn and then corrupted. Other results are the expected ones; here only the mutants that
        corrupt a repetition or read the strides of tensors change them.

        Args:
            case: the case that makes the call.
            arguments: the arguments after the context, in the order of the prototype.
        """
        if not case.draws:
            call = simulate_call(case, self.numerics)
            if self._mutant.corrupt_repetition is not None and self._is_repeated:
                self._record_effect(self._mutant.corrupt_repetition(call))
            if self._cache_strides is not None:
                names = [parameter.name for parameter in lookup(case.function).parameters[1:]]
                self._record_effect(self._cache_strides(call, dict(zip(names, arguments, strict=True))), call)
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
        """Return the host as the device; synchronizing a stream also writes postponed results."""
        return Device(replace(self._runtime, stream_sync=self._synchronize), host_addressable=True)


def fill_box(context: Context, parameter: Parameter, box: Box, array: Array, call: SimulatedCall) -> None:
    """Store a result in a box: the place where a function returns a number, or a tensor that it creates.

    Args:
        context: the context that owns a created tensor.
        parameter: the result's parameter in the prototype.
        box: the box.
        array: the elements of the result.
        call: the simulated call, which has the layouts of its results.
    """
    if parameter.annotation in OUT_VALUES:
        box.value = array.item()
    else:
        box.value = _create_tensor(context, array, layout_named(call.layouts[parameter.name]))


def _create_tensor(context: Context, array: Array, layout: Layout) -> Tensor:
    """Return a new tensor with the elements of an array in a layout; the context owns the tensor."""
    tensor = context.require_tensor(array.shape, from_numpy(array.dtype), layout(array.shape).strides)
    tensor.write(array)
    return tensor


def dense_tensors(value: Any) -> list[Tensor]:
    """Return the dense tensors in an argument, which may be a list; a sparse tensor contributes its dense parts."""
    tensors = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, Tensor)]
    return [dense for tensor in tensors for dense in (tensor.parts if tensor.is_sparse else [tensor])]
