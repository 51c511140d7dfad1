"""Sessions of ONNX Runtime, and its errors in terms of the standard."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from diopi_impl import UnsupportedDtypeError

Array = np.ndarray[Any, Any]

UNSUPPORTED = (
    "Could not find an implementation",  # there is no kernel for these element types
    "Type Error",  # the operator is not defined for these element types
    "bound to different types",  # the operator is not defined for operands of these element types
    "is not currently registered or supported",  # no operator takes this element type
    "can't be converted to MLDataType",  # arrays of this element type cannot be passed
    "No corresponding Numpy type",  # arrays of this element type cannot be returned
    "data type is not supported",  # a kernel supports the type only with other attributes
)
"""Parts of ONNX Runtime's messages about element types that it does not support."""

FATAL = 4
"""The lowest severity of what ONNX Runtime prints; errors are raised as exceptions anyway."""


class Session:
    """A model that ONNX Runtime has loaded for the CPU.

    Args:
        model: the serialized model.

    Raises:
        UnsupportedDtypeError: ONNX Runtime does not support the element types.
    """

    def __init__(self, model: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = FATAL
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _translate_error(error) from None
        self._names = [value.name for value in self._session.get_inputs()]

    def run(self, arrays: list[Array]) -> list[Array]:
        """Return the results of a call; raise UnsupportedDtypeError if arrays of these types cannot be passed."""
        try:
            results: list[Array] = self._session.run(None, dict(zip(self._names, arrays, strict=True)))
        except Exception as error:
            raise _translate_error(error) from None
        return results


def _translate_error(error: Exception) -> Exception:
    """Return the exception of the standard for an exception of ONNX Runtime."""
    if any(text in str(error) for text in UNSUPPORTED):
        return UnsupportedDtypeError(str(error))
    return error
