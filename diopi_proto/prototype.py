"""`Prototype`, the declaration of a standard function, and the registry of all prototypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from diopi_proto import dtypes as dtype_sets
from diopi_proto.callers import CallForm
from diopi_proto.dtypes import DtypeSet, ResultRule, category
from diopi_proto.facts import Converted, Exponent, HasShape, HoldsZeros, MayAlias, NamesAxis, SizeOf
from diopi_proto.ignored import Ignored, Read
from diopi_proto.parameters import (
    Factor,
    InOut,
    InOutSize,
    NewOuts,
    Out,
    Outs,
    Parameter,
    Role,
    Scalar,
)
from diopi_proto.types import Dtype, Number, RoundMode
from diopi_proto.types import Scalar as ScalarValue

GUARANTEES = ("exact", "rounded", "any_of", "random")
"""What a prototype can guarantee about a floating-point result.

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
    """The declaration of a prototype contradicts itself or the registry."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prototype:
    """The declaration of a standard function.

    Attributes:
        name: the C name.
        family: the module that declares the function; the cases and the reference have modules of the same name.
        parameters: the parameters in the order of the C declaration.
        doc: the docstring: meaning, shapes, element types, errors and source.
        dtypes: the element types that the tensor inputs may have.
        argument_dtypes: the element types of the inputs for which `dtypes` does not apply, by name.
        result: the rule that determines a result's element type from those of the inputs, or one rule per result.
        selectable_dtypes: the element types that the caller may select for the result. The call converts its input to
            the element type of `out` before it computes.
        truncates_numbers: whether `out` may be an integer tensor although a floating-point number among the arguments
            makes the common type floating. The call then drops the fraction of the result.
        guarantee: what the standard guarantees about a floating-point result, one of `GUARANTEES`.
        elementwise: whether the tensor inputs have the same shape or broadcast to one shape.
        common_type: whether tensor operands and numbers are converted to their common type first.
        has_unordered_sums: whether a rounded result may depend on the order in which parallel hardware adds, for
            example sums at positions that an index tensor contains. Gradients need not declare it.
        moves_numbers: whether the results consist of elements of the arguments and of constants. A vendor may not flush
            their subnormal numbers to zero, unless the call converts them to another element type.
        multiplies_matrices: whether the function computes matrix products, convolutions or attention, or gradients that
            are matrix products. A vendor may declare the precision of their float32 factors (docs/budgets.md).
        ignored: the arguments that do not affect the results, and the calls in which they do not.
        beyond_pytorch: the element types of arguments and results that the standard accepts and PyTorch does not, by
            parameter name.
        call_forms: the ranks, NULLs and empty lists that known callers pass.
        base: the name of the function that this function is a form of; its own name for a plain function.
        form: "plain", "inplace", "scalar" or "inplace_scalar".
        backward: the name of the gradient function; None if the standard has none.
        returns: the C return type.
    """

    name: str
    family: str
    parameters: tuple[Parameter, ...]
    doc: str
    dtypes: DtypeSet = ()
    argument_dtypes: Mapping[str, DtypeSet] = field(default_factory=dict)
    result: ResultRule | Mapping[str, ResultRule] = dtype_sets.same
    selectable_dtypes: DtypeSet = ()
    truncates_numbers: bool = False
    guarantee: str = "rounded"
    elementwise: bool = False
    common_type: bool = False
    has_unordered_sums: bool = False
    moves_numbers: bool = False
    multiplies_matrices: bool = False
    ignored: Sequence[Ignored] = ()
    beyond_pytorch: Mapping[str, DtypeSet] = field(default_factory=dict)
    call_forms: Sequence[CallForm] = ()
    base: str = ""
    form: str = "plain"
    backward: str | None = None
    returns: str = "diopiError_t"

    @cached_property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters that the results may depend on, in order. Implementations in Python receive their values."""
        return tuple(parameter for parameter in self.parameters if parameter.is_argument)

    @cached_property
    def results(self) -> tuple[Parameter, ...]:
        """The parameters that the call writes, in order. Implementations in Python return their values."""
        return tuple(parameter for parameter in self.parameters if parameter.is_result)

    @cached_property
    def numbers(self) -> tuple[Parameter, ...]:
        """The `diopiScalar_t` arguments that affect the element types of results, in order: all except factors."""
        return tuple(
            p for p in self.arguments if issubclass(p.annotation, Scalar) and not issubclass(p.annotation, Factor)
        )

    def find_conversions(
        self, dtypes: Mapping[str, Dtype], arguments: Mapping[str, Any], result: Dtype
    ) -> tuple[list[str], Dtype]:
        """Return the arguments that a call converts before it computes, and the element type it converts them to.

        The operands are converted to their common type. The numbers with the fact `Converted` are converted to the type
        of the first tensor. If the caller selects the element type of the result, the input is converted to it.

        Args:
            dtypes: the element types of the tensors passed, by name.
            arguments: all arguments by name; for a number only its kind matters (bool, int or float).
            result: the element type of the first result.

        Returns:
            The names of the arguments that are converted, and their common element type after the conversion.
        """
        if self.selectable_dtypes:
            return list(dtypes), result
        if numbers := [p.name for p in self.arguments if p.fact(Converted)]:
            return numbers, next(iter(dtypes.values()))
        tensors = [p.name for p in self.operands if p.name in dtypes]
        if not tensors:
            return [], result
        operands = {p.name: arguments[p.name] for p in self.operands if p.name not in dtypes}
        kinds = {name: number for name, number in operands.items() if number is not None}
        promoting = [] if self.truncates_numbers and category(result) < 2 else list(kinds.values())
        dtype = dtype_sets.common_dtype([dtypes[name] for name in tensors], promoting)
        converted = [name for name in kinds if self._converts(name, arguments, dtype)]
        return [*tensors, *converted], dtype

    def _converts(self, number: str, arguments: Mapping[str, Any], dtype: Dtype) -> bool:
        """Return whether a number is converted to `dtype`, the common type of the operands.

        If the common type is an integer type, the number is converted and wraps around. Exponents and floating-point
        numbers are not converted, nor are the operands of a true division, whose result is floating-point. If the
        common type is a floating-point type, only comparisons convert the number.
        """
        if category(dtype) != category(Dtype.int64):
            return self.result is dtype_sets.truth and category(dtype) >= 2
        modes = [arguments[p.name] for p in self.arguments if p.annotation is RoundMode]
        is_exponent = self.parameter(number).fact(Exponent) is not None
        return not (is_exponent or isinstance(arguments[number], float) or RoundMode.none in modes)

    @property
    def operands(self) -> tuple[Parameter, ...]:
        """The tensors and numbers that the call converts to their common type; empty if it does not convert any."""
        if not self.common_type:
            return ()
        return tuple(p for p in self.arguments if p.is_tensor or p in self.numbers)

    @property
    def is_inplace(self) -> bool:
        """Whether the function is the in-place form of another function."""
        return self.form in ("inplace", "inplace_scalar")

    @property
    def is_gradient(self) -> bool:
        """Whether the function is the gradient of another function."""
        return any(candidate.backward == self.base for candidate in _registry.values())

    @property
    def repeats_bits(self) -> bool:
        """Whether equal calls must return equal bits.

        Exact and rounded functions must. The exceptions are rounded gradients and rounded functions with
        `has_unordered_sums`, because parallel hardware adds up numbers in an unspecified order (see
        `torch.use_deterministic_algorithms`). Functions with the guarantee `any_of` or `random` need not.
        """
        if self.guarantee != "rounded":
            return self.guarantee == "exact"
        return not self.has_unordered_sums and not self.is_gradient

    def parameter(self, name: str) -> Parameter:
        """Return the parameter called `name`; raise a KeyError that lists the known names if there is none."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(f"{self.name} has no parameter {name!r}; its parameters are {[p.name for p in self.parameters]}")

    def dtypes_of(self, argument: str) -> DtypeSet:
        """Return the element types that the tensor argument `argument` may have."""
        return self.argument_dtypes.get(self.parameter(argument).name, self.dtypes)

    def is_beyond_pytorch(self, name: str, dtype: Dtype) -> bool:
        """Return whether PyTorch does not accept an argument or result of this element type.

        PyTorch returns positions only in int64, unless no tensor is searched and the caller selects the type.
        """
        if dtype in self.beyond_pytorch.get(name, ()):
            return True
        is_position = name in self._output_tensors and self.rule_of(name) is dtype_sets.position
        return is_position and dtype is not Dtype.int64 and bool(self._tensor_names[0])

    def unread_arguments(self, arguments: Mapping[str, Any]) -> frozenset[str]:
        """Return the names of the arguments that a call with these values does not read: they may have any value."""
        facts = [fact for fact in self.ignored if fact.read is Read.nothing and fact.covers(arguments)]
        return frozenset(name for fact in facts for name in fact.arguments)

    def has_effect(self, argument: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the value of `argument` may affect a result of a call with these arguments."""
        ignores = any(argument in fact.arguments and fact.covers(arguments) for fact in self.ignored)
        return not ignores and argument not in self._determined_arguments

    @cached_property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """The arguments whose tensor the caller may also pass as a result, by result.

        Shape, element type and layout must agree. The facts of the result name the arguments. Otherwise they are all
        tensors of a function that computes each element of the result from the elements at the same position, because
        programs call `torch.add(x, y, out=x)` and `x.mul_(x)`.
        """
        is_pointwise = self.elementwise and not any(p.fact(NamesAxis) for p in self.arguments)
        read = tuple(p.name for p in self.arguments if p.is_tensor and p.role is Role.input)
        declared = {
            p.name: tuple(fact.argument for fact in p.facts if isinstance(fact, MayAlias)) for p in self.results
        }
        outputs = [p.name for p in self.results if p.annotation is Out or (self.is_inplace and p.annotation is InOut)]
        arguments_by_result = {name: declared[name] or (read if is_pointwise else ()) for name in outputs}
        return {name: arguments for name, arguments in arguments_by_result.items() if arguments}

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int | str, ...]]:
        """The sizes of the tensors whose shape the prototype declares with `HasShape`, by argument."""
        facts = ((p.name, p.fact(HasShape)) for p in self.arguments)
        return {name: fact.sizes for name, fact in facts if fact is not None}

    @cached_property
    def _determined_arguments(self) -> frozenset[str]:
        """The arguments that have only one valid value: sizes that a shape determines, and tensors of zeros."""
        sizes = {size for shape in self.shapes.values() for size in shape}
        return frozenset(p.name for p in self.arguments if p.name in sizes or p.fact(SizeOf) or p.fact(HoldsZeros))

    def rule_of(self, result: str, entry: int | None = None) -> ResultRule:
        """Return the rule for the element type of `result`; each entry of an array from the callee has its own rule."""
        if not isinstance(self.result, Mapping):
            return self.result
        if entry is not None and self.parameter(result).annotation is NewOuts:
            return tuple(self.result.values())[entry]
        return self.result[result]

    def guarantee_of(self, result: str, entry: int | None = None) -> str:
        """Return the guarantee of a result or of one of its entries; truth values and positions are never rounded."""
        has_rule = result not in self._updated_arguments or self.is_inplace
        if self.guarantee == "rounded" and has_rule and self.rule_of(result, entry) in dtype_sets.discrete_rules:
            return "exact"
        return self.guarantee

    def infer(
        self, result: str, arguments: Mapping[str, Any], entry: int | None = None, default: Dtype | None = None
    ) -> Dtype | None:
        """Return the element type that the standard specifies for `result` in a call with these arguments.

        A result that is updated in place keeps its element type. If the type is the common type of the inputs, numbers
        (`Prototype.numbers`) of a higher category promote it. If the caller may choose the type, the returned type is
        the default one; `can_hold` accepts other types.

        Args:
            result: the name of the result.
            arguments: the arguments by name, NULL as None; a tensor is any object with a `dtype`.
            entry: the index of the entry, if the result is an array of tensors. Its type depends on the entry with this
                index in the first array of inputs, if there is one. The type of a single result depends on the single
                tensors, if there are any.
            default: the type of the input, used if the call has no input tensor.

        Returns:
            The element type; None if the call has no input tensor and `default` is None.
        """
        if result in self._updated_arguments:
            tensors = arguments[result] if entry is None else arguments[result][entry]
            return Dtype.int64 if self.parameter(result).annotation is InOutSize else Dtype(tensors.dtype)
        inputs = self._input_dtypes(arguments, entry) or (() if default is None else (default,))
        kinds = tuple(_kind(arguments[p.name]) for p in self.numbers if arguments[p.name] is not None)
        return _apply_rule(self.rule_of(result, entry), inputs, kinds) if inputs else None

    def can_hold(self, result: str, dtype: Dtype, arguments: Mapping[str, Any], entry: int | None = None) -> bool:
        """Return whether the caller may pass a tensor of type `dtype` for a result.

        The result may be converted to a wider or narrower type of the same category, but a floating-point result must
        not be written to an integer tensor, nor a complex one to a real tensor (see torch.can_cast). If the caller
        selects the type, it must be one of `selectable_dtypes`.

        Args:
            result: the name of the result.
            dtype: the element type of the tensor.
            arguments: the arguments of the call by name.
            entry: the index of the entry, if the result is an array of tensors.

        Returns:
            Whether the tensor can receive the result.
        """
        if self.selectable_dtypes or self.rule_of(result) is dtype_sets.caller_chosen:
            return not self.selectable_dtypes or dtype in self.selectable_dtypes
        if self.truncates_numbers:
            arguments = {**arguments, **dict.fromkeys((p.name for p in self.numbers), None)}
        default_dtype = self.infer(result, arguments, entry)
        return default_dtype is None or category(dtype) >= category(default_dtype)

    @cached_property
    def _output_tensors(self) -> frozenset[str]:
        """The results for which the caller allocates the tensors."""
        return frozenset(p.name for p in self.parameters if p.annotation in (Out, Outs))

    @cached_property
    def _updated_arguments(self) -> frozenset[str]:
        """The arguments that are updated in place."""
        return frozenset(p.name for p in self.parameters if p.role is Role.inout)

    @cached_property
    def _tensor_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the arguments that are single tensors, and of those that are arrays of tensors."""
        return (
            tuple(p.name for p in self.arguments if p.is_tensor),
            tuple(p.name for p in self.arguments if p.is_tensor_array),
        )

    def _input_dtypes(self, arguments: Mapping[str, Any], entry: int | None) -> tuple[Dtype, ...]:
        """Return the element types of the inputs that determine the type of a result or of one of its entries."""
        tensor_names, array_names = self._tensor_names
        arrays = [arguments[name] for name in array_names if arguments[name] is not None]
        if entry is not None and arrays and entry < len(arrays[0]):
            return (arrays[0][entry].dtype,)
        dtypes = tuple(arguments[name].dtype for name in tensor_names if arguments[name] is not None)
        return dtypes or tuple(tensor.dtype for array in arrays for tensor in array if tensor is not None)


@lru_cache(maxsize=4096)
def _apply_rule(rule: ResultRule, inputs: tuple[Dtype, ...], numbers: tuple[type[Number], ...]) -> Dtype:
    """Return the result of a rule for inputs and numbers of these types.

    The numbers are passed as types, because the cache would treat False, 0 and 0.0 as equal.
    """
    if rule in (dtype_sets.promoted, dtype_sets.promoted_to_floating):
        scalars = [kind() for kind in numbers]
        inputs = tuple(dtype_sets.promote_with_numbers(dtype, scalars) for dtype in inputs)
    return rule(inputs)


def _kind(value: Any) -> type[Number]:
    """Return bool, int or float: the kind of a number of any class."""
    number = value.number if isinstance(value, ScalarValue) else value
    return next((kind for kind in (bool, int) if isinstance(number, kind)), float)


_registry: dict[str, Prototype] = {}
"""All prototypes by name."""


def register(prototype: Prototype) -> Prototype:
    """Return `prototype` after adding it to the registry; raise PrototypeError if it is invalid or declared twice."""
    if prototype.name in _registry:
        families = f"{_registry[prototype.name].family} and {prototype.family}"
        raise PrototypeError(f"{prototype.name} is declared twice: in {families}")
    if not prototype.doc:
        raise PrototypeError(
            f"{prototype.name} has no docstring; describe its meaning, shapes, element types, errors and source"
        )
    if prototype.guarantee not in GUARANTEES:
        raise PrototypeError(f"{prototype.name}: guarantee {prototype.guarantee!r} is not one of {GUARANTEES}")
    _check_ignored(prototype)
    _check_beyond_pytorch(prototype)
    _check_call_forms(prototype)
    _check_facts(prototype)
    _registry[prototype.name] = prototype
    return prototype


def _check_ignored(prototype: Prototype) -> None:
    """Raise PrototypeError if `ignored` names an unknown argument, or ignores a result in all calls."""
    arguments = {parameter.name: parameter for parameter in prototype.arguments}
    for fact in prototype.ignored:
        if unknown := {*fact.arguments, *fact.conditions} - set(arguments):
            raise PrototypeError(f"{prototype.name}: {min(unknown)!r} in `ignored` is not one of its arguments")
        if (
            fact.read is Read.nothing
            and not fact.conditions
            and any(arguments[name].is_result for name in fact.arguments)
        ):
            raise PrototypeError(f"{prototype.name}: a result that is updated in place can't be ignored in all calls")


def _check_beyond_pytorch(prototype: Prototype) -> None:
    """Raise PrototypeError if `beyond_pytorch` names an unknown parameter."""
    names = {parameter.name for parameter in prototype.parameters}
    if unknown := set(prototype.beyond_pytorch) - names:
        raise PrototypeError(f"{prototype.name}: {min(unknown)!r} in `beyond_pytorch` is not one of its parameters")


def _check_call_forms(prototype: Prototype) -> None:
    """Raise PrototypeError if a call form describes an unknown argument, or if two forms have the same name."""
    names = {parameter.name for parameter in prototype.arguments}
    if unknown := {name for form in prototype.call_forms for name in form.arguments} - names:
        raise PrototypeError(f"{prototype.name}: {min(unknown)!r} in `call_forms` is not one of its arguments")
    if len({form.name for form in prototype.call_forms}) < len(prototype.call_forms):
        raise PrototypeError(f"{prototype.name}: two of its `call_forms` have the same name")


def _check_facts(prototype: Prototype) -> None:
    """Raise PrototypeError if a fact refers to an unknown parameter."""
    names = {parameter.name for parameter in prototype.parameters}
    named = {name for parameter in prototype.parameters for fact in parameter.facts for name in fact.names}
    if unknown := named - names:
        raise PrototypeError(f"{prototype.name}: a fact refers to {min(unknown)!r}, which is not one of its parameters")


def registered_prototypes() -> Mapping[str, Prototype]:
    """Return all prototypes declared so far, by name."""
    return _registry
