"""Cells of LSTM and GRU, which PyTorch calls as single operators, composed of operators that functions implement.

They are registered below and above autograd, so gradients are computed from those of the parts.

A gate is a number from 0 to 1 per element of the state; the gates arrive before their sigmoid, side by side in the
last axis. A bias of None is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the next state and cell (Hochreiter and Schmidhuber 1997), and an unused workspace.

    Args:
        input_gates: the products of the input and its weights, `[batch, 4 * hidden]`.
        hidden_gates: the products of the previous state and its weights, in the same shape.
        cx: the previous cell, `[batch, hidden]`.
        input_bias: the bias of the input gates, `[4 * hidden]`.
        hidden_bias: the bias of the hidden gates, in the same shape.

    Returns:
        State and cell, `[batch, hidden]`, and a tensor without elements.
    """
    gates = _add_bias(input_gates, input_bias) + _add_bias(hidden_gates, hidden_bias)
    enter, forget, candidate, leave = gates.chunk(4, -1)
    cell = forget.sigmoid() * cx + enter.sigmoid() * candidate.tanh()
    return leave.sigmoid() * cell.tanh(), cell, gates.new_empty(0)


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the next state (Cho et al. 2014), and an unused workspace.

    Args:
        input_gates: the products of the input and its weights, `[batch, 3 * hidden]`.
        hidden_gates: the products of the previous state and its weights, in the same shape.
        hx: the previous state, `[batch, hidden]`.
        input_bias: the bias of the input gates, `[3 * hidden]`.
        hidden_bias: the bias of the hidden gates, in the same shape.

    Returns:
        The state, `[batch, hidden]`, and a tensor without elements.
    """
    reset, update, new = _add_bias(input_gates, input_bias).chunk(3, -1)
    hidden_reset, hidden_update, hidden_new = _add_bias(hidden_gates, hidden_bias).chunk(3, -1)
    candidate = (new + (reset + hidden_reset).sigmoid() * hidden_new).tanh()
    return candidate + (update + hidden_update).sigmoid() * (hx - candidate), hx.new_empty(0)


def _add_bias(gates: Tensor, bias: Tensor | None) -> Tensor:
    """Return the gates plus the bias, if there is a bias."""
    return gates if bias is None else gates + bias


CELLS: Mapping[str, Callable[..., Any]] = {"_thnn_fused_lstm_cell": lstm_cell, "_thnn_fused_gru_cell": gru_cell}
"""The implementations by operator name."""
