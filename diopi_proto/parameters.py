"""The kinds of parameter a prototype has: each annotation class stands for one C type and one role.

`X | None` in a prototype means that the caller may leave the parameter out: a NULL handle for a tensor, a NULL
pointer for a number or list. `Annotated[X, fact]` says more of its values, in the terms of `diopi_proto.facts`; the
usual of these have names of their own at the end of the module: `Axis`, `Extents`, `Mask`. `Literal["a", "b"]` is a
`Text` that must be one of these.
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
    """The context of the call: its stream, and the tensors the callee asks for. `diopiContextHandle_t`."""


class In:
    """A tensor that is only read. `diopiConstTensorHandle_t`."""


class SparseIn:
    """A matrix in compressed sparse row form that is only read. `diopiConstTensorHandle_t`.

    To implementations and references in Python it is an array of three: row pointers, columns and values.
    """


class Out:
    """A tensor whose every element the call writes. `diopiTensorHandle_t`."""


class InOut:
    """A tensor that is read and updated in place. `diopiTensorHandle_t`."""


class MutableIn:
    """A tensor that is only read although its C type would allow writing. `diopiTensorHandle_t`."""


class NewOut:
    """A result the callee makes with `diopiRequireTensor`, its size known only at run time. `diopiTensorHandle_t*`."""


class NewOuts:
    """An array of results the callee makes; `result=` names its entries, in order. `diopiTensorHandle_t*`."""


class Workspace:
    """A tensor the callee may overwrite freely: what it holds afterwards means nothing. `diopiTensorHandle_t`."""


class Ins:
    """An array of tensors that are only read; the count is a parameter of its own. `diopiConstTensorHandle_t*`."""


class OptionalIns:
    """As `Ins`; entries may be NULL."""


class Outs:
    """An array of tensors that the call writes; the count is a parameter of its own. `diopiTensorHandle_t*`."""


class InOuts:
    """An array of tensors updated in place; the count is a parameter of its own. `diopiTensorHandle_t*`."""


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
    """As `i64`, spelt `const int64_t`."""


class const_f64(f64):
    """As `f64`, spelt `const double`."""


class const_f32(f32):
    """As `f32`, spelt `const float`."""


class const_boolean(boolean):
    """As `boolean`, spelt `const bool`."""


class const_In(In):
    """As `In`, spelt `const diopiConstTensorHandle_t`."""


class Size:
    """A list of integers. `diopiSize_t` by value, optional: `diopiSize_t*`."""


class const_Size(Size):
    """As `Size`, spelt `const diopiSize_t`; optional or not never a pointer."""


class Scalar:
    """A number with its dtype, by pointer. `const diopiScalar_t*`."""


class MutableScalar(Scalar):
    """As `Scalar`, spelt `diopiScalar_t*`; only read."""


class Factor(Scalar):
    """As `Scalar`; a factor of an operand, which has no part in the types of results. `const diopiScalar_t*`."""


class Text:
    """A NUL-terminated string, never NULL: where none is given it is empty. `const char*`."""


class Generator:
    """A random number generator; the call advances its offset. `diopiGeneratorHandle_t`."""


class Generators:
    """An array of generators; the count is a parameter of its own. `diopiGeneratorHandle_t*`."""


class OutF64:
    """A double the call writes before it returns. `double*`."""


class OutI64:
    """An integer the call writes before it returns. `int64_t*`."""


class InOutSize:
    """A size in bytes, read and perhaps written: if it is negative on entry, the caller asks for the size it needs.

    The call then writes that, 0 or more, and does nothing else. Otherwise it is what the caller provides, and stays.
    `int64_t*`.
    """


class OutBool:
    """A truth value the call writes before it returns. `bool*`."""


class Pointer:
    """A bare address. `void*`."""


class Verbatim:
    """Any other C type, spelt out: `Annotated[object, "void**"]`. Only functions of the runtime need it."""


class Role(Enum):
    """What a parameter is to the call."""

    context = "context"
    input = "input"
    output = "output"
    inout = "inout"
    workspace = "workspace"
    attribute = "attribute"
    count = "count"


@dataclass(frozen=True)
class Kind:
    """How one annotation looks in C: its spelling, the spelling when it is optional, and its role."""

    spelling: str
    optional_spelling: str | None
    role: Role


_TENSOR, _CONST_TENSOR = "diopiTensorHandle_t", "diopiConstTensorHandle_t"

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

SINGLE_TENSORS = (In, MutableIn, Workspace, Out, InOut, NewOut)
TENSOR_ARRAYS = (SparseIn, Ins, OptionalIns, Outs, InOuts, NewOuts)
GENERATORS = (Generator, Generators)
OUT_VALUES = (OutF64, OutI64, OutBool, InOutSize)

BOXED = (NewOut, NewOuts, *OUT_VALUES)
"""What a caller passes a box for, or a list of them, to be filled by a call that succeeds."""


F = TypeVar("F", bound=Fact)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a prototype; a name that is a Python keyword carries a trailing underscore.

    `spelling` is the C type of a `Verbatim` parameter, else empty. `facts` are what else holds of its values.
    """

    name: str
    annotation: Any
    optional: bool = False
    spelling: str = ""
    facts: tuple[Fact, ...] = ()

    def fact(self, kind: type[F]) -> F | None:
        """The fact of a kind that holds of the parameter; None if there is none."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)

    @property
    def c_name(self) -> str:
        """The name in the C interface."""
        bare = self.name.removesuffix("_")
        return bare if iskeyword(bare) else self.name

    @property
    def kind(self) -> Kind:
        """Spelling and role of the annotation."""
        return KINDS[self.annotation]

    @property
    def c_type(self) -> str:
        """The C type exactly as the interface spells it."""
        kind = self.kind
        return self.spelling or (kind.optional_spelling if self.optional else None) or kind.spelling

    @property
    def role(self) -> Role:
        """What the parameter is to the call."""
        return self.kind.role

    @property
    def is_tensor(self) -> bool:
        """Whether one tensor is passed (by handle, or by pointer to a handle the callee fills)."""
        return issubclass(self.annotation, SINGLE_TENSORS)

    @property
    def is_tensor_array(self) -> bool:
        """Whether an array of tensors is passed."""
        return issubclass(self.annotation, TENSOR_ARRAYS)

    @property
    def is_made(self) -> bool:
        """Whether the callee makes the tensor, or the array of tensors."""
        return self.annotation in (NewOut, NewOuts)

    @property
    def where(self) -> Device:
        """Where the memory of the tensor lies."""
        return Device.host if self.fact(facts.OnHost) else Device.device

    @property
    def is_result(self) -> bool:
        """Whether the call writes it."""
        return self.role in (Role.output, Role.inout)

    @property
    def is_argument(self) -> bool:
        """Whether its value goes into the result: everything but context, counts and pure outputs."""
        return self.role in (Role.input, Role.inout, Role.workspace, Role.attribute)


def parse(name: str, annotation: Any) -> Parameter:
    """The parameter `name: annotation` of a prototype function.

    Raises TypeError when the annotation is not one of this module's classes or an enum of the interface.
    """
    united = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    members = [member for member in united if member is not NoneType]
    kind, said = _with_facts(members[0]) if len(members) == 1 else (None, ())
    if said and isinstance(said[0], str):
        return Parameter(name, Verbatim, spelling=said[0])
    if kind not in KINDS:
        known = ", ".join(sorted(kind.__name__ for kind in KINDS))
        raise TypeError(f"parameter {name}: {annotation!r} is not a parameter type; known are {known}")
    return Parameter(name, kind, optional=NoneType in united, facts=said)


def _with_facts(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The class an annotation stands for, and what is said of the values."""
    if get_origin(annotation) is Annotated:
        return annotation.__origin__, annotation.__metadata__
    if get_origin(annotation) is Literal:
        return Text, (facts.OneOf(get_args(annotation)),)
    return annotation, ()


def in_place(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters of an in-place form: without the output, the first input or array of inputs updated."""
    kept = [p for p in parameters if p.annotation not in (Out, Outs)]
    first = next(i for i, p in enumerate(kept) if p.role is Role.input)
    kept[first] = replace(kept[first], annotation=InOuts if kept[first].is_tensor_array else InOut)
    return kept


# Kinds with facts, by the C type they have.

Axis = Annotated[i64, facts.NamesAxis()]
ConstAxis = Annotated[const_i64, facts.NamesAxis()]
Axes = Annotated[Size, facts.NamesAxis()]
Index = Annotated[i64, facts.NamesIndex()]
Extent = Annotated[i64, facts.AtLeast(0)]
Extents = Annotated[Size, facts.AtLeast(0)]
ConstExtents = Annotated[const_Size, facts.AtLeast(0)]
PositiveExtent = Annotated[i64, facts.AtLeast(1)]
PositiveExtents = Annotated[Size, facts.AtLeast(1)]
NonNegative = Annotated[f64, facts.AtLeast(0)]
PositiveCount = Annotated[Count, facts.AtLeast(1)]
Mask = Annotated[In, facts.HoldsTruth()]
MaskInOut = Annotated[InOut, facts.HoldsTruth()]
MasksOrIndices = Annotated[OptionalIns, facts.HoldsTruth()]
Sized = Annotated[In, facts.SizesFollow()]
SizedInOut = Annotated[InOut, facts.SizesFollow()]
Broadcast = Annotated[In, facts.SizesFollow(broadcast=True)]
ChosenOut = Annotated[Out, facts.ShapeChosen()]
ZerosInOut = Annotated[InOut, facts.HoldsZeros()]
HostIn = Annotated[In, facts.OnHost()]
HostOut = Annotated[Out, facts.OnHost()]
StoredIn = Annotated[In, facts.Stored()]
StoredScalar = Annotated[Scalar, facts.Stored()]
ConvertedScalar = Annotated[Scalar, facts.Converted()]
