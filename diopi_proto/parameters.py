"""The kinds of parameters of a prototype: each annotation class stands for one C type and one role.

- `X | None` means that the caller may omit the argument: a NULL handle for a tensor, a NULL pointer for a number or a
  list.
- `Annotated[X, fact]` adds a fact about the values (`diopi_proto.facts`). Common combinations have names at the end of
  this module, such as `Axis`, `Extents` and `Mask`.
- `Literal["a", "b"]` is a `Text` that must be one of these strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from keyword import iskeyword
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from diopi_proto import facts
from diopi_proto.facts import Fact
from diopi_proto.types import Device, MemoryFormat, Reduction, RoundMode


class Context:
    """The context of the call: its stream, and the tensors that the callee requests. `diopiContextHandle_t`."""


class In:
    """A tensor that is only read. `diopiConstTensorHandle_t`."""


class SparseIn:
    """A matrix in compressed sparse row form that is only read. `diopiConstTensorHandle_t`.

    Implementations and references in Python receive three arrays: row pointers, columns and values.
    """


class Out:
    """A tensor of which the call writes every element. `diopiTensorHandle_t`."""


class InOut:
    """A tensor that is read and updated in place. `diopiTensorHandle_t`."""


class MutableIn:
    """A tensor that is only read although its C type would allow writing. `diopiTensorHandle_t`."""


class NewOut:
    """A result that the callee allocates with `diopiRequireTensor` and sizes at run time. `diopiTensorHandle_t*`."""


class NewOuts:
    """An array of results that the callee allocates; `result=` names the entries in order. `diopiTensorHandle_t*`."""


class Workspace:
    """A tensor that the callee may use as scratch memory; its final contents are undefined. `diopiTensorHandle_t`."""


class Ins:
    """An array of tensors that are only read; the count is a separate parameter. `diopiConstTensorHandle_t*`."""


class OptionalIns:
    """An array of tensors that are only read; its entries may be NULL. `diopiConstTensorHandle_t*`."""


class Outs:
    """An array of tensors that the call writes; the count is a separate parameter. `diopiTensorHandle_t*`."""


class InOuts:
    """An array of tensors that are updated in place; the count is a separate parameter. `diopiTensorHandle_t*`."""


class Count:
    """The number of entries in the arrays of the call. `int64_t`."""


class i64:
    """A 64-bit integer. `int64_t`, optional: `const int64_t*`."""


class i32:
    """A 32-bit integer. `int32_t`."""


class c_int:
    """A C integer. `int`."""


class f64:
    """A double. `double`, optional: `const double*`."""


class f32:
    """A float. `float`."""


class boolean:
    """A truth value. `bool`, optional: `const bool*`."""


class const_i64(i64):
    """A 64-bit integer. `const int64_t`."""


class const_f64(f64):
    """A double. `const double`."""


class const_f32(f32):
    """A float. `const float`."""


class const_boolean(boolean):
    """A truth value. `const bool`."""


class const_In(In):
    """A tensor that is only read. `const diopiConstTensorHandle_t`."""


class Size:
    """A list of integers. `diopiSize_t` by value, optional: `diopiSize_t*`."""


class const_Size(Size):
    """A list of integers. `const diopiSize_t`, not a pointer, even if it is optional."""


class Scalar:
    """A number with its dtype, by pointer. `const diopiScalar_t*`."""


class MutableScalar(Scalar):
    """A number with its dtype, by pointer; the call only reads it. `diopiScalar_t*`."""


class Factor(Scalar):
    """A factor of an operand: a number whose dtype does not affect the dtypes of results. `const diopiScalar_t*`."""


class Text:
    """A NUL-terminated string, never NULL: the caller passes an empty string instead. `const char*`."""


class Generator:
    """A random number generator; the call advances its offset. `diopiGeneratorHandle_t`."""


class Generators:
    """An array of generators; the count is a separate parameter. `diopiGeneratorHandle_t*`."""


class OutF64:
    """A double that the call writes before it returns. `double*`."""


class OutI64:
    """An integer that the call writes before it returns. `int64_t*`."""


class InOutSize:
    """A workspace size in bytes; a negative value is a workspace query. `int64_t*`.

    In a workspace query, the call writes the required size, which is at least 0, and does nothing else. Otherwise the
    value is the size that the caller provides, and the call does not change it.
    """


class OutBool:
    """A truth value that the call writes before it returns. `bool*`."""


class Pointer:
    """A bare address. `void*`."""


class Verbatim:
    """Any other C type, written out: `Annotated[object, "void**"]`. Only functions of the runtime need it."""


class Role(Enum):
    """The role of a parameter in the call."""

    context = "context"
    input = "input"
    output = "output"
    inout = "inout"
    workspace = "workspace"
    attribute = "attribute"
    count = "count"


@dataclass(frozen=True)
class Kind:
    """The meaning of an annotation.

    Attributes:
        spelling: the C type.
        optional_spelling: the C type if the parameter is optional; None if it is the same type.
        role: the role of the parameter.
    """

    spelling: str
    optional_spelling: str | None
    role: Role


_TENSOR, _CONST_TENSOR = "diopiTensorHandle_t", "diopiConstTensorHandle_t"
"""The C types of tensor handles: writable and read-only."""

KINDS: dict[Any, Kind] = {
    Context: Kind("diopiContextHandle_t", None, Role.context),
    In: Kind(_CONST_TENSOR, _CONST_TENSOR, Role.input),
    const_In: Kind(f"const {_CONST_TENSOR}", f"const {_CONST_TENSOR}", Role.input),
    SparseIn: Kind(_CONST_TENSOR, None, Role.input),
    MutableIn: Kind(_TENSOR, _TENSOR, Role.input),
    Out: Kind(_TENSOR, _TENSOR, Role.output),
    InOut: Kind(_TENSOR, _TENSOR, Role.inout),
    NewOut: Kind(f"{_TENSOR}*", f"{_TENSOR}*", Role.output),
    NewOuts: Kind(f"{_TENSOR}*", None, Role.output),
    Workspace: Kind(_TENSOR, None, Role.workspace),
    Ins: Kind(f"{_CONST_TENSOR}*", f"{_CONST_TENSOR}*", Role.input),
    OptionalIns: Kind(f"{_CONST_TENSOR}*", None, Role.input),
    Outs: Kind(f"{_TENSOR}*", f"{_TENSOR}*", Role.output),
    InOuts: Kind(f"{_TENSOR}*", f"{_TENSOR}*", Role.inout),
    Count: Kind("int64_t", None, Role.count),
    i64: Kind("int64_t", "const int64_t*", Role.attribute),
    const_i64: Kind("const int64_t", None, Role.attribute),
    i32: Kind("int32_t", None, Role.attribute),
    c_int: Kind("int", None, Role.attribute),
    f64: Kind("double", "const double*", Role.attribute),
    const_f64: Kind("const double", None, Role.attribute),
    f32: Kind("float", None, Role.attribute),
    const_f32: Kind("const float", None, Role.attribute),
    boolean: Kind("bool", "const bool*", Role.attribute),
    const_boolean: Kind("const bool", None, Role.attribute),
    Size: Kind("diopiSize_t", "diopiSize_t*", Role.attribute),
    const_Size: Kind("const diopiSize_t", None, Role.attribute),
    Scalar: Kind("const diopiScalar_t*", "const diopiScalar_t*", Role.attribute),
    Factor: Kind("const diopiScalar_t*", None, Role.attribute),
    MutableScalar: Kind("diopiScalar_t*", None, Role.attribute),
    Text: Kind("const char*", None, Role.attribute),
    Generator: Kind("diopiGeneratorHandle_t", "diopiGeneratorHandle_t", Role.attribute),
    Generators: Kind("diopiGeneratorHandle_t*", None, Role.attribute),
    OutF64: Kind("double*", None, Role.output),
    OutI64: Kind("int64_t*", None, Role.output),
    OutBool: Kind("bool*", None, Role.output),
    InOutSize: Kind("int64_t*", None, Role.inout),
    Pointer: Kind("void*", None, Role.attribute),
    Verbatim: Kind("", None, Role.attribute),
    MemoryFormat: Kind("diopiMemoryFormat_t", None, Role.attribute),
    Reduction: Kind("diopiReduction_t", None, Role.attribute),
    RoundMode: Kind("diopiRoundMode_t", None, Role.attribute),
}
"""The C types and the role of each annotation."""

SINGLE_TENSORS = (In, MutableIn, Workspace, Out, InOut, NewOut)
"""Annotations of one tensor; derived classes belong to them."""

TENSOR_ARRAYS = (SparseIn, Ins, OptionalIns, Outs, InOuts, NewOuts)
"""Annotations that implementations in Python receive as a list of tensors."""

GENERATORS = (Generator, Generators)
"""Annotations of random generators."""

OUT_VALUES = (OutF64, OutI64, OutBool, InOutSize)
"""Annotations of numbers that the call writes through a pointer."""

BOXED = (NewOut, NewOuts, *OUT_VALUES)
"""Kinds for which callers in Python pass a box, or a list of boxes, that a successful call fills."""


F = TypeVar("F", bound=Fact)


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of a prototype.

    Attributes:
        name: the name in Python; a name that is a Python keyword has a trailing underscore.
        annotation: the class in `KINDS` that the parameter is annotated with.
        optional: whether the caller may omit the argument.
        spelling: the C type of a `Verbatim` parameter, otherwise empty.
        facts: additional properties of its values.
    """

    name: str
    annotation: Any
    optional: bool = False
    spelling: str = ""
    facts: tuple[Fact, ...] = ()

    def fact(self, kind: type[F]) -> F | None:
        """Return the fact of the class `kind` that the parameter has, or None."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)

    @property
    def c_name(self) -> str:
        """The name in the C interface."""
        bare = self.name.removesuffix("_")
        return bare if iskeyword(bare) else self.name

    @property
    def kind(self) -> Kind:
        """The C types and the role of the annotation."""
        return KINDS[self.annotation]

    @property
    def c_type(self) -> str:
        """The C type exactly as in the interface."""
        kind = self.kind
        return self.spelling or (kind.optional_spelling if self.optional else None) or kind.spelling

    @property
    def role(self) -> Role:
        """The role of the parameter in the call."""
        return self.kind.role

    @property
    def is_tensor(self) -> bool:
        """Whether the parameter is one tensor: a handle, or a pointer to a handle that the callee writes."""
        return issubclass(self.annotation, SINGLE_TENSORS)

    @property
    def is_tensor_array(self) -> bool:
        """Whether the parameter is an array of tensors."""
        return issubclass(self.annotation, TENSOR_ARRAYS)

    @property
    def is_callee_allocated(self) -> bool:
        """Whether the callee allocates the tensor or the array of tensors."""
        return self.annotation in (NewOut, NewOuts)

    @property
    def device(self) -> Device:
        """The kind of memory that the tensor is in."""
        return Device.host if self.fact(facts.OnHost) else Device.device

    @property
    def is_result(self) -> bool:
        """Whether the call writes the argument."""
        return self.role in (Role.output, Role.inout)

    @property
    def is_argument(self) -> bool:
        """Whether the results may depend on the argument: all parameters except context, counts and pure outputs."""
        return self.role in (Role.input, Role.inout, Role.workspace, Role.attribute)


def parse(name: str, annotation: Any) -> Parameter:
    """Return the parameter that `name: annotation` declares in a prototype function.

    Args:
        name: the name of the parameter.
        annotation: a class of this module or an enum of the interface, perhaps in `X | None`, `Annotated` or `Literal`.

    Returns:
        The parameter, with the facts of the annotation.

    Raises:
        TypeError: if the annotation is not one of the known kinds.
    """
    united = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    members = [member for member in united if member is not NoneType]
    kind, declared = _split_facts(members[0]) if len(members) == 1 else (None, ())
    if declared and isinstance(declared[0], str):
        return Parameter(name=name, annotation=Verbatim, spelling=declared[0])
    if kind not in KINDS:
        kind_names = ", ".join(sorted(kind.__name__ for kind in KINDS))
        raise TypeError(f"parameter {name}: {annotation!r} is not a parameter type; known are {kind_names}")
    return Parameter(name=name, annotation=kind, optional=NoneType in united, facts=declared)


def _split_facts(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the class of an annotation and its facts."""
    if get_origin(annotation) is Annotated:
        return annotation.__origin__, annotation.__metadata__
    if get_origin(annotation) is Literal:
        return Text, (facts.OneOf(get_args(annotation)),)
    return annotation, ()


def derive_in_place(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters of the in-place form: the first input or array of inputs becomes the result."""
    remaining = [p for p in parameters if p.annotation not in (Out, Outs)]
    first = next(i for i, p in enumerate(remaining) if p.role is Role.input)
    remaining[first] = replace(remaining[first], annotation=InOuts if remaining[first].is_tensor_array else InOut)
    return remaining


# Kinds with facts.

Axis = Annotated[i64, facts.NamesAxis()]
"""An axis."""

ConstAxis = Annotated[const_i64, facts.NamesAxis()]
"""An axis, declared `const`."""

Axes = Annotated[Size, facts.NamesAxis()]
"""A list of axes."""

Index = Annotated[i64, facts.NamesIndex()]
"""A position along an axis; negative numbers count from its end."""

Extent = Annotated[i64, facts.AtLeast(0)]
"""A size or count that is at least 0."""

Extents = Annotated[Size, facts.AtLeast(0)]
"""A list of sizes that are at least 0."""

ConstExtents = Annotated[const_Size, facts.AtLeast(0)]
"""A list of sizes that are at least 0, declared `const`."""

PositiveExtent = Annotated[i64, facts.AtLeast(1)]
"""A size or count that is at least 1."""

PositiveExtents = Annotated[Size, facts.AtLeast(1)]
"""A list of sizes that are at least 1."""

NonNegative = Annotated[f64, facts.AtLeast(0)]
"""A `double` that is at least 0."""

PositiveCount = Annotated[Count, facts.AtLeast(1)]
"""The number of entries in arrays, at least 1."""

Mask = Annotated[In, facts.HoldsTruth()]
"""An input of truth values."""

MaskInOut = Annotated[InOut, facts.HoldsTruth()]
"""Truth values that the call reads and updates."""

MasksOrIndices = Annotated[OptionalIns, facts.HoldsTruth()]
"""An array of masks and index tensors, whose entries may be NULL."""

Sized = Annotated[In, facts.SizesFollow()]
"""An input whose shape follows from the preceding arguments."""

SizedInOut = Annotated[InOut, facts.SizesFollow()]
"""A tensor that is updated in place; its shape follows from the preceding arguments."""

Broadcast = Annotated[In, facts.SizesFollow(broadcast=True)]
"""An input that broadcasts to a shape which the preceding arguments determine."""

ChosenOut = Annotated[Out, facts.ShapeChosen()]
"""A result whose shape the caller chooses."""

ZerosInOut = Annotated[InOut, facts.HoldsZeros()]
"""A result that contains zeros before the call."""

HostIn = Annotated[In, facts.OnHost()]
"""An input in host memory."""

HostOut = Annotated[Out, facts.OnHost()]
"""A result in host memory."""

StoredIn = Annotated[In, facts.Stored()]
"""An input that is written into a tensor of another element type, in which it must be representable."""

StoredScalar = Annotated[Scalar, facts.Stored()]
"""A number that is written into a tensor and must be representable in its element type."""

ConvertedScalar = Annotated[Scalar, facts.Converted()]
"""A number that is first converted to the element type of the first tensor."""
