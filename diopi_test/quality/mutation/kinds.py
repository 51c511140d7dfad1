"""What each kind of mutant does, as a sentence for the documentation."""

from __future__ import annotations

from collections.abc import Mapping

DESCRIPTIONS: Mapping[str, str] = {
    # Elements of results
    "first element wrong": "The first element of each result has another value.",
    "last element wrong": "The last element of each result has another value.",
    "one element in 2000 wrong": (
        "Element 1999 of each result has another value; the index wraps at the size of the result."
    ),
    "last block not computed": (
        "The last block of up to 16 elements of each result is 0; in a result of up to 16 elements, only the last one "
        "is."
    ),
    "result added to the previous result": (
        "A repeated call of a case adds its result to the equal result of the call before."
    ),
    "all elements zero": "All elements of the results are 0.",
    "nothing written": "The call writes no result.",
    "result not written": "The call writes all results but one.",
    "state not updated": "The call does not write one of the tensors that it has to update.",
    "off by 4 eps": "Each floating-point element is too large by 4 epsilons of its type, relative to its size.",
    "off by 1e-3": "Each floating-point element is too large by one thousandth.",
    "off by 4 %": "Each floating-point element is too large by 4 %.",
    "NaN replaced by 0": "Results contain 0 instead of NaN.",
    "infinity replaced by the largest number": (
        "Results contain the largest finite number of their type instead of infinity."
    ),
    "sign of zero dropped": "Results contain +0 instead of −0.",
    "computed in bfloat16": "Results are rounded to bfloat16 and converted to their type.",
    "computed in float16": "Results are rounded to float16 and converted to their type.",
    "computed in float32": "Results are rounded to float32 and converted to their type.",
    "integers converted to float64 and back": "Results of type int64 are rounded to float64 and converted back.",
    "result transposed": "The elements of a result are stored as if its last two axes were swapped.",
    "indices reversed": "Results of an integer type are reversed along their first axis that is longer than 1.",
    "neighboring indices swapped": "The first two neighbors that differ are swapped in results of an integer type.",
    "every element repeated": "A result contains each element of its first half twice.",
    "result allocated in another type": "The call allocates a result with the same values in another element type.",
    # Arguments
    "tensor replaced by ones": "A tensor is read as if all its elements were 1.",
    "tensor replaced by its first element": "A tensor is read as if all its elements were equal to the first one.",
    "tensor transposed": "A tensor is read as if its last two axes were swapped in memory.",
    "tensor not broadcast": "A tensor that has to be broadcast is repeated in row-major order instead.",
    "strides of a tensor ignored": "A tensor that is not row-major is read as if it were.",
    "tensor ignored": "An optional tensor is treated as missing.",
    "tensor in reverse order": "The entries of an array of tensors are read in reverse order.",
    "attribute ignored": "An attribute has no effect, or it has the same value in all calls.",
    "attribute off by one": "An attribute is larger by 1.",
    "attribute negated": "An attribute has the opposite sign or truth value.",
    "attribute in reverse order": "The entries of an attribute are read in reverse order.",
    "operands swapped": "Two tensors of the same type are exchanged.",
    "axis replaced by the next axis": "An attribute names the axis after the right one.",
    # Formulas, and precision within them
    "formula changed": "The formula has another operator, number or function.",
    "−∞ replaced by −10,000 in the formula": (
        "A hidden score, or the number from which a maximum within the formula starts, is −10,000 instead of −∞."
    ),
    "square of a difference expanded": "(a − b)² is computed as a² − 2ab + b² in float32.",
    "inputs rounded to bfloat16": "The inputs are rounded to bfloat16 before computing.",
    "inputs rounded to float16": "The inputs are rounded to float16 before computing.",
    "inputs rounded to float32": "The inputs are rounded to float32 before computing.",
    "inputs rounded to the narrowest of their types": (
        "All inputs are rounded to the narrowest of their types before computing."
    ),
    "accumulated in bfloat16": "Sums are rounded to bfloat16 after each term.",
    "accumulated in float16": "Sums are rounded to float16 after each term.",
    "accumulated in float32": "Sums are rounded to float32 after each term.",
    "accumulated in half precision": "Long sums are rounded to the 16-bit type of the result after each term.",
    "NaNs in large tensors replaced by 0": "NaN is read as 0 in tensors of more than 1,024 elements.",
    # NaNs, infinities and overflow
    "negative NaN read as −∞": "A NaN whose sign bit is set is read as −∞.",
    "products with a factor 0 skipped": "A product is 0 if a factor is 0, even if the other one is infinite or NaN.",
    "overflow saturates in half precision": (
        "Finite arguments give the largest number of a half-precision type instead of infinity."
    ),
    "numbers below −10,000 read as −10,000": "A maximum that starts at −10,000 is wrong like this for lower numbers.",
    "numbers above 10,000 read as 10,000": "A minimum that starts at 10,000 is wrong like this for higher numbers.",
    "subnormal numbers flushed to zero when they are moved": (
        "A function that only moves numbers returns 0 instead of subnormal numbers."
    ),
    # Ranks, addresses and sizes
    "last element wrong with more than 5 axes": (
        "The last element of each result is wrong if a tensor has more than five axes."
    ),
    "last element wrong with a misaligned tensor": (
        "The last element of each result is wrong if a contiguous tensor begins at an address that is no multiple of "
        "16 bytes."
    ),
    "last element wrong with rows of a multiple of 16 elements": (
        "The last element of each result is wrong if a tensor is contiguous and has rows of a multiple of 16 elements."
    ),
    "last element wrong with a multiple of 16 channels": (
        "The last element of each result is wrong if the second axis of a tensor has a multiple of 16 elements."
    ),
    "last element wrong with rows of one element": (
        "The last element of each result is wrong if the last axis of a tensor has one element."
    ),
    "last element wrong on a special path": (
        "The last element of each result is wrong in calls for which libraries have kernels of their own, such as "
        "convolutions with a 3 × 3 kernel and a multiple of 16 channels."
    ),
    "last element wrong if more than 2,048 elements are selected": (
        "The last element of each result is wrong if the attribute k is larger than 2,048."
    ),
    # Numbers and element types
    "only the lowest bit of masks read": "An even number in a mask of type uint8 is read as false.",
    "results beyond 32,768 rounded to float16": (
        "Products of matrices in float32 are rounded to float16 if their absolute values exceed 32,768."
    ),
    "tensor reduced modulo 64": "Only the lowest 6 bits of a tensor's nonnegative integers are read.",
    "tensor truncated to 32 bits": "Only the lowest 32 bits of a tensor's integers are read.",
    "tensor converted to float32 and back": (
        "The numbers of a tensor are rounded to float32, in calls without narrower floating-point types."
    ),
    "tensor converted to float64 and back": "The integers of a tensor are rounded to float64.",
    "tensor truncated to integers": "A tensor loses its fractions, in calls whose tensors have integers.",
    "tensor rounded to integers": "A tensor is rounded to integers, in calls whose tensors have integers.",
    "attribute reduced modulo 64": "Only the lowest 6 bits of a nonnegative integer attribute are read.",
    "attribute truncated to 32 bits": "Only the lowest 32 bits of an integer attribute are read.",
    "attribute converted to float32 and back": (
        "An attribute is rounded to float32, in calls without narrower floating-point types."
    ),
    "attribute converted to float64 and back": "An integer attribute is rounded to float64.",
    "attribute truncated to integers": "An attribute loses its fraction, in calls whose tensors have integers.",
    "attribute rounded to integers": "An attribute is rounded to an integer, in calls whose tensors have integers.",
    "arguments not converted before computing": (
        "The arguments are not converted to the common type of all operands or to the type of the result."
    ),
    "computed in the standard's result type, then converted": (
        "The result is computed in the type that the standard infers, and not in that of the caller's tensor."
    ),
    "operands converted to the type of the first": "All operands are converted to the type of the first one.",
    "0-d operands converted to the type of the others": (
        "An operand without axes does not take part in the choice of the common type."
    ),
    # Memory and time
    "input overwritten": "The call flips a bit of the first element of each input.",
    "input changed by one ulp": "The call changes the lowest bit of the last element of each input.",
    "byte after the end written": "The call writes to the byte after the storage of each result.",
    "byte before the start written": "The call writes to the byte before the storage of each result.",
    "gap in the storage written": (
        "The call writes to the beginning of the storage of a result whose first element comes later."
    ),
    "strides of the result ignored": "The call writes the elements of a result without gaps, in row-major order.",
    "result written after return": "The call writes its results only after the caller has synchronized the stream.",
    "memory leaked": "The call allocates device memory and never frees it.",
    # State that lasts from an earlier call
    "attribute cached from an earlier call": (
        "An attribute has its value from an earlier call with equal shapes and types."
    ),
    "all attributes cached from an earlier call": (
        "All attributes have their values from an earlier call with equal shapes and types."
    ),
    "result cached by shape and type": (
        "The results are those of an earlier call whose results have equal shapes and types."
    ),
    "result cached without regard to data": (
        "The results are those of an earlier call that differs only in the elements of its tensors."
    ),
    "element types cached from an earlier call": (
        "Tensors are converted to their types in an earlier call with equal shapes."
    ),
    "kind of scalar cached from an earlier call": (
        "A scalar has its type from an earlier call in which it had an equal value, such as 1 and 1.0."
    ),
    "order of tensors cached from an earlier call": (
        "Tensors are read in the order that an earlier call had for their shapes and types."
    ),
    "strides cached from an earlier call": (
        "A tensor is read with its strides from an earlier call that differs only in strides and data."
    ),
    # Random numbers
    "seed ignored": "Random numbers do not depend on the seed of the generator.",
    "offset ignored": "Random numbers do not depend on the offset of the generator.",
    "generator ignored": "Random numbers depend on the number of earlier calls, and not on the generator.",
    "offset not advanced": "The call draws random numbers but does not advance the offset of the generator.",
}
"""What a mutant does, by its kind, for the kinds in the table of the page. Other kinds are described by their names."""
