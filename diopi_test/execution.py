"""Running one case on a vendor: tensors made, the function called, everything read back and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from diopi_impl import BaseVendor, Box
from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.types import Error, MemoryFormat, Reduction, RoundMode, Scalar
from diopi_test.baseline import BaselineCase, BaselineTensor, Expected
from diopi_test.checks import CHECKS
from diopi_test.layouts import LAYOUTS
from diopi_test.run import Bytes, GeneratorRecord, Run, TensorRecord, ValueRecord
from diopi_test.verdict import Finding, Outcome, Verdict
from lib_rt import Context, Device, Generator, Tensor
from lib_rt.errors import GuardError

current_case: ContextVar[BaselineCase] = ContextVar("current_case")
"""The case that is being run, for vendors that are made from its expected results."""

_VERDICT_OF_CODE = {Error.NoImplement: Verdict.not_implemented, Error.DtypeNotSupported: Verdict.unsupported}


def run_case(vendor: BaseVendor, device: Device, case: BaselineCase) -> Outcome:
    """Run `case` on `vendor`, whose device is `device`, and judge it; nothing stays allocated."""
    if not vendor.has(case.function):
        return Outcome(Verdict.not_implemented, f"{vendor.name} does not implement {case.function}")
    token = current_case.set(case)
    try:
        with Call(vendor, device, case) as call:
            run = call.run()
    except _Refused as refused:
        return _judge_code(vendor, case, refused.code)
    finally:
        current_case.reset(token)
    return _judge_findings(vendor, case, [finding for check in CHECKS if (finding := check(run)) is not None])


def _judge_code(vendor: BaseVendor, case: BaselineCase, code: Error) -> Outcome:
    outcome = Outcome(_VERDICT_OF_CODE.get(code, Verdict.failed), f"{code.name}: {vendor.last_error()}")
    return _waive(vendor, case, outcome)


def _judge_findings(vendor: BaseVendor, case: BaselineCase, findings: Sequence[Finding]) -> Outcome:
    message = "; ".join(f"{finding.check}: {finding.message}" for finding in findings if not finding.passed)
    verdict = Verdict.failed if message else Verdict.passed
    return _waive(vendor, case, Outcome(verdict, message, findings))


def _waive(vendor: BaseVendor, case: BaselineCase, outcome: Outcome) -> Outcome:
    waiver = vendor.waiver_for(case.id)
    if waiver is None or outcome.verdict is not Verdict.failed:
        return outcome
    return Outcome(Verdict.waived, f"{waiver.reason} ({outcome.message})", outcome.findings)


class _Refused(Exception):
    """The function answered with an error code."""

    def __init__(self, code: Error) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass
class _Placed:
    """A tensor of the call, with its storage as it was before."""

    name: str
    role: Role
    tensor: Tensor
    before: Bytes | None
    expected: Expected | None


class Call:
    """One call on a device: a context of its own, the tensors of arguments and results, and what the callee makes.

    A call that draws random numbers is repeated with fresh tensors, to show how its numbers depend on the generator.
    """

    def __init__(self, vendor: BaseVendor, device: Device, case: BaselineCase) -> None:
        self.vendor = vendor
        self.case = case
        self.prototype = lookup(case.function)
        self.context = Context(device)
        self._placed: list[_Placed] = []
        self._boxes: dict[str, Box] = {}
        self._generators: dict[str, Generator] = {}
        self._damage: list[GuardError] = []

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *exception: object) -> None:
        self._release()
        self.context.close()

    def run(self) -> Run:
        """Call the function and read everything back."""
        run = self._once()
        if self.prototype.promise != "random":
            return run
        others = {"the next call": self._once()}
        if not self._generators:
            return replace(run, others=others)
        self._seed_anew(difference=1)
        others["another seed"] = self._once()
        self._seed_anew()
        return replace(run, others=others, again=self._once())

    def _once(self) -> Run:
        self._boxes.clear()
        values = [self._value(parameter) for parameter in self.prototype.parameters[1:]]
        before = self._states()
        code = self.vendor.call(self.case.function, self.context, *values)
        self.context.stream.synchronize()
        if code is not Error.Success:
            raise _Refused(code)
        after = self._states()
        return replace(self._collect(), generators=[GeneratorRecord(n, before[n], after[n]) for n in before])

    def _states(self) -> dict[str, tuple[int, int]]:
        return {name: (generator.seed, generator.offset) for name, generator in self._generators.items()}

    def _seed_anew(self, difference: int = 0) -> None:
        """Put the generators back to where the case has them, or to a seed that differs from it in these bits."""
        for name, generator in self._generators.items():
            generator.seed = self.case.arguments[name] ^ difference
            generator.offset = 0

    def _collect(self) -> Run:
        """Read back what the call left behind, and free it."""
        values, missing = self._collect_boxes()
        tensors = [
            TensorRecord(
                placed.name,
                placed.role,
                placed.tensor.dtype,
                placed.tensor.shape,
                placed.tensor.strides,
                placed.tensor.storage_offset,
                placed.before,
                placed.tensor.storage(),
                placed.expected,
            )
            for placed in self._placed
        ]
        self._release()
        return Run(self.prototype, self.case, tensors, values, missing, self._damage)

    def _collect_boxes(self) -> tuple[list[ValueRecord], list[str]]:
        values, missing = [], []
        for name, box in self._boxes.items():
            expected = self.case.expected[name]
            assert isinstance(expected, Expected)
            if isinstance(box.value, Tensor):
                self._placed.append(_Placed(name, Role.output, box.value, None, expected))
            elif box.value is None:
                missing.append(name)
            else:
                values.append(ValueRecord(name, box.value, expected))
        return values, missing

    def _release(self) -> None:
        for placed in self._placed:
            try:
                placed.tensor.close()
            except GuardError as error:
                self._damage.append(error)
        self._placed.clear()

    def _value(self, parameter: Parameter) -> Any:
        """What is passed for `parameter`."""
        if parameter.role is Role.count:
            return self._count()
        if parameter.role is Role.output:
            return self._result(parameter)
        argument = self.case.arguments[parameter.name]
        expected = self.case.expected.get(parameter.name)
        if isinstance(argument, BaselineTensor):
            if parameter.annotation is kinds.Pointer:
                return self._argument(parameter.name, Role.input, argument, None).storage_ptr
            return self._argument(parameter.name, parameter.role, argument, expected)
        if parameter.is_tensor_array and isinstance(argument, list):
            wanted = expected if isinstance(expected, list) else [None] * len(argument)
            return [
                self._argument(f"{parameter.name}.{number}", parameter.role, entry, one) if entry else None
                for number, (entry, one) in enumerate(zip(argument, wanted, strict=True))
            ]
        if parameter.annotation is kinds.Generator and argument is not None:
            return self._generator(parameter.name, argument)
        return as_attribute(parameter, argument)

    def _generator(self, name: str, seed: int) -> Generator:
        """The generator made from the case's seed, one for all rounds of the call."""
        if name not in self._generators:
            self._generators[name] = Generator(self.context, seed)
        return self._generators[name]

    def _count(self) -> int:
        """The common length of the call's arrays of tensors."""
        return max(
            len(value)
            for value in (*self.case.arguments.values(), *self.case.expected.values())
            if isinstance(value, list)
        )

    def _argument(self, name: str, role: Role, argument: BaselineTensor, expected: Any) -> Tensor:
        place = LAYOUTS[argument.layout](argument.values.shape)
        tensor = Tensor.from_numpy(
            self.context,
            argument.values,
            dtype=argument.dtype,
            strides=place.strides,
            offset=place.offset,
            storage_elements=place.storage_elements,
        )
        return self._keep(name, role, tensor, expected)

    def _result(self, parameter: Parameter) -> Any:
        expected = self.case.expected[parameter.name]
        if expected is None:
            return None
        if parameter.annotation is kinds.NewOut or parameter.annotation in kinds.OUT_VALUES:
            return self._boxes.setdefault(parameter.name, Box())
        if isinstance(expected, list):
            return [self._poisoned(f"{parameter.name}.{number}", entry) for number, entry in enumerate(expected)]
        return self._poisoned(parameter.name, expected)

    def _poisoned(self, name: str, expected: Expected) -> Tensor:
        place = LAYOUTS[expected.layout](expected.values.shape)
        tensor = Tensor.empty(
            self.context,
            expected.values.shape,
            expected.dtype,
            strides=place.strides,
            offset=place.offset,
            storage_elements=place.storage_elements,
        )
        return self._keep(name, Role.output, tensor, expected)

    def _keep(self, name: str, role: Role, tensor: Tensor, expected: Any) -> Tensor:
        self._placed.append(_Placed(name, role, tensor, tensor.storage(), expected))
        return tensor


_ENUMS = (Reduction, RoundMode, MemoryFormat)


def as_attribute(parameter: Parameter, value: Any) -> Any:
    """An attribute as a vendor receives it: scalars with their dtype, enums as such."""
    if value is None:
        return None
    annotation = parameter.annotation
    if issubclass(annotation, kinds.Scalar):
        return Scalar.of(value)
    if annotation in _ENUMS:
        make: Callable[[int], Any] = annotation
        return make(value) if value in set(annotation) else value
    return value
