"""`@prototype`: a bodiless Python function becomes a `Prototype` in the registry, with the forms derived from it.

    @prototype(dtypes=numeric, result=promoted, inplace="diopiMulInp", scalar="diopiMulScalar")
    def diopiMul(ctx: Context, out: Out, input: In, other: In):
        \"""Product input · other. ...\"""

enters `diopiMul`, `diopiMulInp(ctx, input, other)` and `diopiMulScalar(ctx, out, input, other)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, get_type_hints

from diopi_proto import dtypes as dtype_sets
from diopi_proto.callers import CallForm
from diopi_proto.docstrings import FORM_DOCS, documented
from diopi_proto.dtypes import DtypeSet, ResultRule, category, is_complex
from diopi_proto.facts import Converted, Exponent, HasShape, HoldsZeros, MayBe, NamesAxis, SizeOf
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Factor,
    InOutSize,
    NewOuts,
    Out,
    Outs,
    Parameter,
    Role,
    Scalar,
    in_place,
    parse,
)
from diopi_proto.types import Dtype, Number, RoundMode
from diopi_proto.types import Scalar as ScalarValue

GUARANTEES = ("exact", "rounded", "any_of", "random")
"""What a prototype can guarantee of a floating-point result.

- `exact`: the result is the one representable value, bit for bit.
- `rounded`: the result lies within the error budget.
- `any_of`: the result is one of several valid results; equal elements may be sorted in any order, for example.
- `random`: the result is a sample of a distribution.

Integer and boolean results of exact and rounded functions are exact. So are truth values and positions, whatever the
element type of the tensor that holds them (`Prototype.guarantee_of`). Exact and rounded functions return the same bits
for the same arguments on the same device, if the alignment of the tensors is the same. The exceptions are rounded
functions that add in an unspecified order (`Prototype.repeats_bits`).
"""


class PrototypeError(Exception):
    """A prototype that contradicts itself or the registry."""


@dataclass(frozen=True, eq=False)
class Prototype:
    """What a standard operator is.

    Attributes:
        name: the C name.
        family: the module that declares it, the same name on every floor.
        parameters: in C order.
        doc: meaning, shapes, dtypes, errors, source.
        dtypes: element types the tensor inputs may have; `argument_dtypes` names the inputs that differ.
        result: rule (or rules, by result name) giving a result's element type from the inputs'.
        ordered: element types in which the caller may order the result: the call converts its input to that of `out`
            first and computes in it.
        truncated: whether numbers lift an integer result only if its tensor is floating; in an integer one it has no
            fraction.
        guarantee: what the standard guarantees of a floating-point result, one of `GUARANTEES`.
        elementwise: whether the tensor inputs have one shape, or broadcast to one.
        common_type: whether operands, tensors and numbers, are converted to their common type first.
        unordered: whether a rounded result may depend on the order in which parallel hardware happens to add, as of
            sums at places an index tensor names; gradients may without saying so.
        ignored: arguments that take no part in the results, and in which calls.
        beyond_pytorch: element types of arguments and results that the standard accepts and PyTorch does not, by name.
        call_forms: ranks, NULLs and empty lists that known callers pass.
        base: the function this one is a form of; itself for a plain function.
        form: "plain", "inplace", "scalar" or "inplace_scalar".
        backward: name of its gradient function, if the standard has one.
        returns: the C return type.
    """

    name: str
    family: str
    parameters: tuple[Parameter, ...]
    doc: str
    dtypes: DtypeSet = ()
    argument_dtypes: Mapping[str, DtypeSet] = field(default_factory=dict)
    result: ResultRule | Mapping[str, ResultRule] = dtype_sets.same
    ordered: DtypeSet = ()
    truncated: bool = False
    guarantee: str = "rounded"
    elementwise: bool = False
    common_type: bool = False
    unordered: bool = False
    ignored: Sequence[Ignored] = ()
    beyond_pytorch: Mapping[str, DtypeSet] = field(default_factory=dict)
    call_forms: Sequence[CallForm] = ()
    base: str = ""
    form: str = "plain"
    backward: str | None = None
    returns: str = "diopiError_t"

    @cached_property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters whose values go into the result, in order: what a functional implementation takes."""
        return tuple(parameter for parameter in self.parameters if parameter.is_argument)

    @cached_property
    def results(self) -> tuple[Parameter, ...]:
        """The parameters the call writes, in order: what a functional implementation returns."""
        return tuple(parameter for parameter in self.parameters if parameter.is_result)

    @cached_property
    def numbers(self) -> tuple[Parameter, ...]:
        """The `diopiScalar_t` arguments that take part in the types of results, in order: all but factors."""
        return tuple(
            p for p in self.arguments if issubclass(p.annotation, Scalar) and not issubclass(p.annotation, Factor)
        )

    def converted_first(
        self, dtypes: Mapping[str, Dtype], arguments: Mapping[str, Any], result: Dtype
    ) -> tuple[list[str], Dtype]:
        """Return the arguments that are converted before anything is computed, and the element type they get.

        These are the operands, to their common type; the numbers that have the fact `Converted`; or the input of a
        function whose result the caller orders.

        Args:
            dtypes: the element types of the tensors passed, by name.
            arguments: all arguments by name; of a number only its kind counts (bool, int or float).
            result: the element type of the first result.
        """
        if self.ordered:
            return list(dtypes), result
        if numbers := [p.name for p in self.arguments if p.fact(Converted)]:
            return numbers, next(iter(dtypes.values()))
        tensors = [p.name for p in self.operands if p.name in dtypes]
        if not tensors:
            return [], result
        others = {p.name: arguments[p.name] for p in self.operands if p.name not in dtypes}
        kinds = {name: number for name, number in others.items() if number is not None}
        lifting = [] if self.truncated and category(result) < 2 else list(kinds.values())
        dtype = dtype_sets.common([dtypes[name] for name in tensors], lifting)
        numbers = [name for name in kinds if self._converts(name, arguments, dtype)]
        return [*tensors, *numbers], dtype

    def _converts(self, number: str, arguments: Mapping[str, Any], dtype: Dtype) -> bool:
        """Whether a number is converted to `dtype`, the common type of the operands.

        Beside integers it wraps around, unless it is an exponent or a true quotient is computed, which is floating.
        Beside floating operands only comparisons convert it.
        """
        if category(dtype) != category(Dtype.int64):
            return self.result is dtype_sets.truth and category(dtype) >= 2
        modes = [arguments[p.name] for p in self.arguments if p.annotation is RoundMode]
        is_exponent = self.parameter(number).fact(Exponent) is not None
        return not (is_exponent or isinstance(arguments[number], float) or RoundMode.none in modes)

    @property
    def operands(self) -> tuple[Parameter, ...]:
        """The tensors and numbers that the call converts to their common type first; none where it does not."""
        if not self.common_type:
            return ()
        return tuple(p for p in self.arguments if p.is_tensor or p in self.numbers)

    @property
    def is_inplace(self) -> bool:
        """Whether this is the in-place form of another function."""
        return self.form in ("inplace", "inplace_scalar")

    @property
    def is_gradient(self) -> bool:
        """Whether another function names it as its gradient."""
        return any(other.backward == self.base for other in _registry.values())

    @property
    def repeats_bits(self) -> bool:
        """Whether equal calls give equal bits.

        Exact results have no choice. Rounded ones have, but for gradients and sums at indices: there parallel hardware
        adds in the order it happens to come in, as PyTorch lists under `torch.use_deterministic_algorithms`.
        """
        if self.guarantee != "rounded":
            return self.guarantee == "exact"
        return not self.unordered and not self.is_gradient

    def parameter(self, name: str) -> Parameter:
        """The parameter called `name`; KeyError with the known names if there is none."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(f"{self.name} has no parameter {name!r}, it has {[p.name for p in self.parameters]}")

    def dtypes_of(self, argument: str) -> DtypeSet:
        """The element types tensor argument `argument` may have."""
        return self.argument_dtypes.get(self.parameter(argument).name, self.dtypes)

    def is_beyond_pytorch(self, name: str, dtype: Dtype) -> bool:
        """Return whether PyTorch does not accept an argument or result of this element type.

        PyTorch gives positions in int64 only, except where no tensor is searched and the caller orders the type.
        """
        if dtype in self.beyond_pytorch.get(name, ()):
            return True
        is_position = name in self._written and self.rule_of(name) is dtype_sets.position
        return is_position and dtype is not Dtype.int64 and bool(self._tensors[0])

    def unread_arguments(self, arguments: Mapping[str, Any]) -> frozenset[str]:
        """Return the names of the arguments that a call with these values does not read: they may be anything."""
        facts = [fact for fact in self.ignored if fact.read is Read.nothing and fact.covers(arguments)]
        return frozenset(name for fact in facts for name in fact.arguments)

    def has_effect(self, argument: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the value of `argument` may change a result of a call with these arguments."""
        ignores = any(argument in fact.arguments and fact.covers(arguments) for fact in self.ignored)
        return not ignores and argument not in self._settled

    @cached_property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """By result, the arguments whose tensor the caller may pass for it, if shape, element type and layout agree.

        The facts of the result say so. Otherwise they are all tensors of a function that computes each element of the
        result from the same element of its tensors, as `torch.add(x, y, out=x)` requires.
        """
        is_pointwise = self.elementwise and not any(p.fact(NamesAxis) for p in self.arguments)
        read = tuple(p.name for p in self.arguments if p.is_tensor and p.role is Role.input)
        said = {p.name: tuple(fact.argument for fact in p.facts if isinstance(fact, MayBe)) for p in self.results}
        whole = [p.name for p in self.results if p.annotation is Out]
        found = {name: said[name] or (read if is_pointwise else ()) for name in whole}
        return {name: arguments for name, arguments in found.items() if arguments}

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int | str, ...]]:
        """By argument, the sizes of the tensors whose shape the prototype says, as `HasShape` does."""
        facts = ((p.name, p.fact(HasShape)) for p in self.arguments)
        return {name: fact.sizes for name, fact in facts if fact is not None}

    @cached_property
    def _settled(self) -> frozenset[str]:
        """The arguments that can have one value only: sizes that the shapes say, zeros that are added to."""
        sizes = {size for shape in self.shapes.values() for size in shape}
        return frozenset(p.name for p in self.arguments if p.name in sizes or p.fact(SizeOf) or p.fact(HoldsZeros))

    def rule_of(self, result: str, entry: int | None = None) -> ResultRule:
        """The rule for the element type of `result`; each entry of an array the callee makes has its own."""
        if not isinstance(self.result, Mapping):
            return self.result
        if entry is not None and self.parameter(result).annotation is NewOuts:
            return tuple(self.result.values())[entry]
        return self.result[result]

    def guarantee_of(self, result: str, entry: int | None = None) -> str:
        """Return the guarantee of a result or of one of its entries; truth values and positions are never rounded."""
        has_rule = result not in self._updated or self.is_inplace
        if self.guarantee == "rounded" and has_rule and self.rule_of(result, entry) in dtype_sets.whole:
            return "exact"
        return self.guarantee

    def infer(
        self, result: str, arguments: Mapping[str, Any], entry: int | None = None, otherwise: Dtype | None = None
    ) -> Dtype | None:
        """The element type the standard gives `result` in a call with these arguments.

        A result updated in place keeps its own. Numbers, the arguments in `numbers`, take part where the inputs' common
        type does: one of a higher category lifts it. Where the caller may choose, this is the usual type: `can_hold`
        tells which others there are.

        Args:
            arguments: by name, NULL as None; a tensor is anything with a `dtype`.
            entry: number of the entry, if the result is an array of tensors. Its type follows from the entry of this
                number in the first array of inputs, if there is one; a single result's from the single tensors, if
                there are any.
            otherwise: the type of the input, where the call has no tensor that says it; without it None is returned.
        """
        if result in self._updated:
            held = arguments[result] if entry is None else arguments[result][entry]
            return Dtype.int64 if self.parameter(result).annotation is InOutSize else Dtype(held.dtype)
        inputs = self._input_dtypes(arguments, entry) or (() if otherwise is None else (otherwise,))
        kinds = tuple(_kind(arguments[p.name]) for p in self.numbers if arguments[p.name] is not None)
        return _applied(self.rule_of(result, entry), inputs, kinds) if inputs else None

    def can_hold(self, result: str, dtype: Dtype, arguments: Mapping[str, Any], entry: int | None = None) -> bool:
        """Whether a tensor of type `dtype` may be passed for `result`, or entry `entry` of it.

        Numbers may be widened and rounded, but a floating result is not put into an integer tensor, nor a complex one
        into a real tensor, as in PyTorch (torch.can_cast). Where the caller orders the type, it has to be on offer.
        """
        if self.ordered or self.rule_of(result) is dtype_sets.chosen:
            return not self.ordered or dtype in self.ordered
        if self.truncated:
            arguments = {**arguments, **dict.fromkeys((p.name for p in self.numbers), None)}
        usual = self.infer(result, arguments, entry)
        return usual is None or category(dtype) >= category(usual)

    @cached_property
    def _written(self) -> frozenset[str]:
        """The tensors that the caller makes for results."""
        return frozenset(p.name for p in self.parameters if p.annotation in (Out, Outs))

    @cached_property
    def _updated(self) -> frozenset[str]:
        """The arguments that are updated in place."""
        return frozenset(p.name for p in self.parameters if p.role is Role.inout)

    @cached_property
    def _tensors(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The arguments that are tensors, and those that are arrays of them."""
        return (
            tuple(p.name for p in self.arguments if p.is_tensor),
            tuple(p.name for p in self.arguments if p.is_tensor_array),
        )

    def _input_dtypes(self, arguments: Mapping[str, Any], entry: int | None) -> tuple[Dtype, ...]:
        """The element types that the type of a result, or of an entry of it, follows from."""
        single, several = self._tensors
        arrays = [arguments[name] for name in several if arguments[name] is not None]
        if entry is not None and arrays and entry < len(arrays[0]):
            return (arrays[0][entry].dtype,)
        alone = tuple(arguments[name].dtype for name in single if arguments[name] is not None)
        return alone or tuple(tensor.dtype for array in arrays for tensor in array if tensor is not None)


@lru_cache(maxsize=4096)
def _applied(rule: ResultRule, inputs: tuple[Dtype, ...], numbers: tuple[type[Number], ...]) -> Dtype:
    """What a rule gives for inputs and numbers of these types; by kinds, for False, 0 and 0.0 are equal."""
    if rule in (dtype_sets.promoted, dtype_sets.floated):
        scalars = [kind() for kind in numbers]
        inputs = tuple(dtype_sets.lift(dtype, scalars) for dtype in inputs)
    return rule(inputs)


def _kind(value: Any) -> type[Number]:
    """Whether a number is a bool, an int or a float, whatever class it is of."""
    number = value.number if isinstance(value, ScalarValue) else value
    return next((kind for kind in (bool, int) if isinstance(number, kind)), float)


_registry: dict[str, Prototype] = {}


def register(prototype: Prototype) -> Prototype:
    """Enter `prototype`; PrototypeError if its name is taken or it has no description."""
    if prototype.name in _registry:
        families = f"{_registry[prototype.name].family} and {prototype.family}"
        raise PrototypeError(f"{prototype.name} is declared twice: in {families}")
    if not prototype.doc:
        raise PrototypeError(f"{prototype.name} has no docstring: its meaning is the standard")
    if prototype.guarantee not in GUARANTEES:
        raise PrototypeError(f"{prototype.name}: guarantee {prototype.guarantee!r} is not one of {GUARANTEES}")
    _check_ignored(prototype)
    _check_beyond_pytorch(prototype)
    _check_call_forms(prototype)
    _check_facts(prototype)
    _registry[prototype.name] = prototype
    return prototype


def _check_ignored(prototype: Prototype) -> None:
    """PrototypeError if what is ignored is no argument; what is updated and not read stays as it is in such calls."""
    arguments = {parameter.name: parameter for parameter in prototype.arguments}
    for fact in prototype.ignored:
        if unknown := {*fact.arguments, *fact.where} - set(arguments):
            raise PrototypeError(f"{prototype.name}: {min(unknown)!r} in `ignored` is not one of its arguments")
        if fact.read is Read.nothing and not fact.where and any(arguments[name].is_result for name in fact.arguments):
            raise PrototypeError(f"{prototype.name}: what is updated in place can't be ignored altogether")


def _check_beyond_pytorch(prototype: Prototype) -> None:
    """Raise PrototypeError if `beyond_pytorch` names no tensor of the function."""
    known = {parameter.name for parameter in prototype.parameters}
    if unknown := set(prototype.beyond_pytorch) - known:
        raise PrototypeError(f"{prototype.name}: {min(unknown)!r} in `beyond_pytorch` is not one of its parameters")


def _check_call_forms(prototype: Prototype) -> None:
    """Raise PrototypeError if a call form describes what is not an argument, or two forms have one name."""
    known = {parameter.name for parameter in prototype.arguments}
    if unknown := {name for form in prototype.call_forms for name in form.arguments} - known:
        raise PrototypeError(f"{prototype.name}: {min(unknown)!r} in `call_forms` is not one of its arguments")
    if len({form.name for form in prototype.call_forms}) < len(prototype.call_forms):
        raise PrototypeError(f"{prototype.name}: two of its `call_forms` have the same name")


def _check_facts(prototype: Prototype) -> None:
    """PrototypeError if a fact speaks of another parameter that there is not."""
    known = {parameter.name for parameter in prototype.parameters}
    named = {name for parameter in prototype.parameters for fact in parameter.facts for name in fact.names}
    if unknown := named - known:
        raise PrototypeError(f"{prototype.name}: a fact speaks of {min(unknown)!r}, which is not one of its parameters")


def registered() -> Mapping[str, Prototype]:
    """All prototypes declared so far, by name."""
    return _registry


def prototype(
    *,
    inplace: str | None = None,
    scalar: str | None = None,
    inplace_scalar: str | None = None,
    scalar_arguments: Sequence[str] | None = None,
    **facts: Any,
) -> Callable[[Callable[..., Any]], Prototype]:
    """Declare the standard function that the decorated function's name, parameters and docstring describe.

    Args:
        inplace: name of the in-place form, in which the first input is overwritten with the result.
        scalar: name of the scalar form, which takes `scalar_arguments` (default: every tensor input but the
            first) as `diopiScalar_t`.
        inplace_scalar: name of the form that is both.
        facts: the attributes of `Prototype` from `dtypes` on; the docstring gets paragraphs that say what is not read
            and what callers pass.
    """

    def declare(function: Callable[..., Any]) -> Prototype:
        plain = _plain(function, facts)
        scalars = scalar_arguments or [p.name for p in plain.parameters if p.role is Role.input][1:]
        register(plain)
        for form, name in (("inplace", inplace), ("scalar", scalar), ("inplace_scalar", inplace_scalar)):
            if name:
                register(_derive(plain, form, name, scalars))
        return plain

    return declare


def _plain(function: Callable[..., Any], facts: Mapping[str, Any]) -> Prototype:
    """What a bodiless function declares, with these facts."""
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    plain = Prototype(
        name=function.__name__,
        family=function.__module__.rsplit(".", 1)[-1],
        parameters=tuple(parse(name, annotation) for name, annotation in hints.items()),
        doc="",
        base=function.__name__,
        **facts,
    )
    doc = documented(inspect.getdoc(function) or "", plain.parameters, plain.ignored, plain.call_forms)
    return replace(plain, doc=doc)


elementwise = partial(prototype, elementwise=True)
"""`prototype` for functions whose tensors have one shape, or broadcast to one."""

arithmetic = partial(elementwise, common_type=True)
"""`elementwise` for functions whose operands are converted to their common type first."""


def _derive(plain: Prototype, form: str, name: str, scalars: Sequence[str]) -> Prototype:
    parameters = list(plain.parameters)
    if form != "inplace":
        parameters = [replace(p, annotation=Scalar) if p.name in scalars else p for p in parameters]
    if form != "scalar":
        parameters = in_place(parameters)
    first = next(p.name for p in plain.parameters if p.role is Role.input)
    listed = " and ".join(f"`{scalar}`" for scalar in scalars) + (" is" if len(scalars) == 1 else " are")
    summary = FORM_DOCS[form].format(base=plain.name, first=first, scalars=listed)
    doc = f"{summary}\n\n{plain.doc}"
    derived = replace(plain, name=name, form=form, parameters=tuple(parameters), doc=doc, backward=None)
    return replace(derived, dtypes=_storable(plain)) if derived.is_inplace else derived


def _storable(plain: Prototype) -> DtypeSet:
    """The types that can hold their own result: no floating one in an integer, no modulus in a complex tensor."""
    rule = plain.result
    if isinstance(rule, Mapping):
        return plain.dtypes
    if rule is dtype_sets.component:
        return tuple(dtype for dtype in plain.dtypes if not is_complex(dtype))
    return tuple(dtype for dtype in plain.dtypes if category(rule([dtype])) <= category(dtype))
