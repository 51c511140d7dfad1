"""Measure a vendor's arithmetic, and derive the narrowest declaration that permits it.

A declaration (`Numerics`) states how the arithmetic of a vendor differs from IEEE 754, with one field per property. It
is narrow if it permits no arithmetic that the vendor does not use. Each function `_add_…` measures one field. It adds
the value of the field and the evidence for it, sentences about the measurement, to a draft of the declaration. It adds
nothing if the vendor lacks the functions that would be called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from diopi_impl import BaseVendor
from diopi_impl.numerics import ErrorBound, Numerics, to_toml
from diopi_impl.numerics.declaration import Convolution, Float64, Products, SumOrder
from diopi_test.fingerprint.numerics.algorithms import measure_algorithms
from diopi_test.fingerprint.numerics.errors import FunctionErrors, measure_errors
from diopi_test.fingerprint.numerics.factors import FORMAT_OF_BITS, FactorPrecision, measure_factors
from diopi_test.fingerprint.numerics.half_sums import measure_half_sums
from diopi_test.fingerprint.numerics.operators import Operators
from diopi_test.fingerprint.numerics.repetition import measure_repetition
from diopi_test.fingerprint.numerics.small_numbers import measure_float64, measure_signed_zeros, measure_subnormals
from diopi_test.fingerprint.probe import ProbeFailedError
from lib_rt import Context, Device

EMULATED_BITS = 44
"""The least number of significant bits of an acceptable emulation of float64.

Vendors emulate float64 by pairs of float32 numbers, which have 48 significant bits. Products and quotients of such
pairs lose some of them.
"""


@final
@dataclass(frozen=True, kw_only=True)
class MeasuredNumerics:
    """The result of measuring a vendor's arithmetic.

    Attributes:
        numerics: the narrowest declaration that permits the measured arithmetic.
        evidence: sentences about the measurements, by field of the declaration. Fields without evidence could not be
            measured.
        problems: descriptions of measured properties that no declaration permits.
        errors: the errors of elementary functions.
        repeated_families: the families of functions for which repeated calls with equal arguments gave equal results.
    """

    numerics: Numerics
    evidence: Mapping[str, Sequence[str]]
    problems: Sequence[str]
    errors: Sequence[FunctionErrors]
    repeated_families: frozenset[str]

    def to_toml(self) -> str:
        """Return the text of a TOML file with the declaration, and the evidence as comments."""
        lines = [f"# {field}: {text}" for field, texts in self.evidence.items() for text in texts]
        lines += [f"# {name}: not measured, because the vendor lacks the functions" for name in self.not_measured]
        lines += [f"# can't be declared: {problem}" for problem in self.problems]
        return "\n".join([*lines, "", to_toml(self.numerics)])

    @property
    def not_measured(self) -> list[str]:
        """The names of the fields that could not be measured."""
        return [name for name in MEASUREMENTS if name not in self.evidence]


@final
@dataclass(kw_only=True)
class DeclarationDraft:
    """A draft of a declaration, completed field by field while a vendor is measured; see `MeasuredNumerics`.

    Attributes:
        fields: the values of the measured fields, by name.
        evidence: sentences about the measurements, by field.
        problems: descriptions of measured properties that no declaration permits.
        errors: the errors of elementary functions.
        repeated_families: the families of functions for which repeated calls with equal arguments gave equal results.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    errors: Sequence[FunctionErrors] = ()
    repeated_families: frozenset[str] = frozenset()

    def add(self, name: str, value: Any, *evidence: object) -> None:
        """Set the value of the field `name` and the evidence for it, which is converted to text."""
        self.fields[name] = value
        self.evidence[name] = list(map(str, evidence))


def _add_products(operators: Operators, draft: DeclarationDraft) -> None:
    """Measure the formats to which the factors of matrix products and of convolutions are rounded."""
    precisions = measure_factors(operators)
    matrices = [precision for family, precision in precisions.items() if family != "conv"]
    if matrices:
        draft.add("float32_products", _narrowest(matrices, draft), *matrices)
    if "conv" in precisions:
        draft.add("convolution_products", _narrowest([precisions["conv"]], draft), precisions["conv"])


def _narrowest(precisions: Sequence[FactorPrecision], draft: DeclarationDraft) -> Products:
    """Return the least precise format among those that the operators use; this format permits all of them.

    Precisions that no format permits are added to the problems of the draft.
    """
    draft.problems += [str(precision) for precision in precisions if precision.products is None]
    permitted = [precision.products for precision in precisions if precision.products is not None]
    order: list[Products] = ["ieee", *FORMAT_OF_BITS.values()]
    return max(permitted, key=order.index, default="ieee")


def _add_half_accumulation(operators: Operators, draft: DeclarationDraft) -> None:
    """Measure whether sums of half-precision numbers are accumulated in half precision or in float32."""
    sums = measure_half_sums(operators)
    if sums:
        half_sums = [str(entry) for entry in sums if entry.is_half]
        evidence = f"partial sums of half precision have at least {min(entry.bits for entry in sums)} significant bits"
        draft.add("half_accumulation", "half" if half_sums else "float32", *(half_sums or [evidence]))


def _add_convolutions(operators: Operators, draft: DeclarationDraft) -> None:
    """Measure which algorithms compute convolutions."""
    measured = measure_algorithms(operators)
    draft.problems += [str(entry) for entry in measured if entry.algorithm is None]
    if measured:
        algorithms: frozenset[Convolution] = frozenset(entry.algorithm for entry in measured if entry.algorithm)
        draft.add("convolutions", algorithms | {"direct"}, *measured)


def _add_elementary(operators: Operators, draft: DeclarationDraft) -> None:
    """Measure the errors of elementary functions, and declare bounds for errors above one ulp."""
    draft.errors = measured = measure_errors(operators)
    bounds: dict[str, tuple[ErrorBound, ...]] = {entry.name: entry.bounds for entry in measured if entry.bounds}
    draft.problems += [str(entry) for entry in measured if entry.undeclared]
    if measured:
        accurate = ", ".join(entry.name for entry in measured if not entry.bounds and not entry.undeclared)
        draft.add("elementary", bounds, *(entry for entry in measured if entry.bounds))
        draft.evidence["elementary"] += [f"errors up to 1 ulp: {accurate}"] if accurate else []


def _add_subnormals(operators: Operators, draft: DeclarationDraft) -> None:
    """Measure whether subnormal numbers are flushed to zero; the value is None if no probed function does so."""
    fates_by_function = measure_subnormals(operators)
    flushed = {
        aspect: [
            function for function, fates in fates_by_function.items() if fates.get(aspect, "").startswith("flushed")
        ]
        for aspect in ("arguments", "results")
    }
    evidence = [f"{aspect} are flushed by {', '.join(functions)}" for aspect, functions in flushed.items() if functions]
    if fates_by_function:
        value = "flush-inputs" if flushed["arguments"] else "flush-results" if flushed["results"] else None
        unflushed = 'no probed function flushes; declare "keep" to have this checked'
        draft.add("subnormals", value, *(evidence or [unflushed]))


def _add_signed_zeros(operators: Operators, draft: DeclarationDraft) -> None:
    """Measure whether functions return −0 where IEEE 754 requires it."""
    is_negative_by_function = measure_signed_zeros(operators)
    lost = [function for function, is_negative in is_negative_by_function.items() if not is_negative]
    if is_negative_by_function:
        evidence = f"−0 is lost by {', '.join(lost)}" if lost else f"−0 is kept by {', '.join(is_negative_by_function)}"
        draft.add("signed_zeros", "ignore" if lost else "keep", evidence)


def _add_sum_order(operators: Operators, draft: DeclarationDraft) -> None:
    """Measure for which families of functions the order of summation changes from call to call."""
    is_equal_by_family = measure_repetition(operators)
    orders: dict[str, SumOrder] = {
        family: "run-to-run" for family, is_equal in is_equal_by_family.items() if not is_equal
    }
    if is_equal_by_family:
        texts = [f"equal calls differ in the families {', '.join(orders)}"] if orders else []
        draft.repeated_families = frozenset(is_equal_by_family) - frozenset(orders)
        equal = ", ".join(sorted(draft.repeated_families))
        texts += [f"equal calls agree in the families {equal}"] if equal else []
        draft.add("sum_order", orders, *texts)


def _add_float64(operators: Operators, draft: DeclarationDraft) -> None:
    """Measure whether float64 is absent, emulated or computed with full precision."""
    try:
        bits = measure_float64(operators)
    except ProbeFailedError:
        return
    if bits is None:
        draft.add("float64", "absent", "the vendor rejects float64")
        return
    value: Float64 = "ieee" if bits == 53 else "emulated"
    draft.add("float64", value, f"sums, products and quotients have {bits} significant bits")
    if bits < EMULATED_BITS:
        draft.problems.append(f"float64 has {bits} significant bits, and pairs of float32 numbers have 48")


MEASUREMENTS: Mapping[str, Callable[[Operators, DeclarationDraft], None]] = {
    "float32_products": _add_products,
    "half_accumulation": _add_half_accumulation,
    "convolutions": _add_convolutions,
    "elementary": _add_elementary,
    "subnormals": _add_subnormals,
    "signed_zeros": _add_signed_zeros,
    "sum_order": _add_sum_order,
    "float64": _add_float64,
}
"""The function that measures each field. `float32_products` also measures `convolution_products`."""


def measure_numerics(
    vendor: BaseVendor,
    fields: Sequence[str] = tuple(MEASUREMENTS),
    progress: Callable[[str], None] = lambda name: None,
) -> MeasuredNumerics:
    """Measure a vendor's arithmetic.

    Args:
        vendor: the vendor.
        fields: the fields of `MEASUREMENTS` to measure.
        progress: a function that is called with the name of each field before it is measured.

    Returns:
        The measured arithmetic.
    """
    with vendor.open_device() as device:
        return measure_on_device(vendor, device, fields, progress)


def measure_on_device(
    vendor: BaseVendor,
    device: Device,
    fields: Sequence[str] = tuple(MEASUREMENTS),
    progress: Callable[[str], None] = lambda name: None,
) -> MeasuredNumerics:
    """Measure a vendor's arithmetic on an open device; the other arguments are those of `measure_numerics`.

    If the vendor's arithmetic is IEEE 754, the declaration has the default name; otherwise its name is "measured".

    Returns:
        The measured arithmetic.
    """
    draft = DeclarationDraft()
    for name in fields:
        progress(name)
        with Context(device) as context:
            MEASUREMENTS[name](Operators(vendor, context), draft)
    numerics = Numerics(name="measured", **draft.fields)
    if numerics.is_ieee:
        numerics = Numerics(**draft.fields)
    return MeasuredNumerics(
        numerics=numerics,
        evidence=draft.evidence,
        problems=draft.problems,
        errors=draft.errors,
        repeated_families=draft.repeated_families,
    )
