"""Cases of the connectionist temporal classification (CTC) loss and its gradient.

The CTC loss is the negative log-likelihood of a sequence of labels under the log-probabilities of classes at each time
step. One class, the blank, separates labels. Graves et al., "Connectionist Temporal Classification" (2006).

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A case does not pass
arguments whose names start with `_`; it computes other arguments from them. Smoke cases belong to the shortest level of
the suite. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction
from diopi_test.cases.case import Case, ResultOf, ResultOverride, Values, cases_for
from diopi_test.cases.domains import normal
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.loss.reduced import MEAN, NONE, SUM
from diopi_test.cases.template import Arguments, CaseTemplate, DtypeSelection, TensorTemplate, expand, tensor


@dataclass(frozen=True, kw_only=True)
class CtcBatch:
    """The sizes and the targets of a batch.

    Attributes:
        steps: The number T of time steps of the tensor `log_probs`.
        classes: The number C of classes, including the blank.
        targets: The labels of each sample; no label is the blank.
        input_lengths: The number of time steps of each sample, at most `steps`.
    """

    steps: int
    classes: int
    targets: Sequence[Sequence[int]]
    input_lengths: Sequence[int]

    def target_array(self, padding_columns: int | None, blank: int) -> Any:
        """Return the targets as an array of labels.

        Args:
            padding_columns: The number of padding labels after the longest target; None for targets without padding.
            blank: The class of the blank.

        Returns:
            The padded targets of shape (N, S), or all targets one after another in shape (S). The padding is a class
            that is not the blank.
        """
        if padding_columns is None:
            return np.concatenate([np.array(target, np.int64) for target in self.targets])
        width = max(map(len, self.targets)) + padding_columns
        padding = (blank + 1) % self.classes
        return np.array([[*target, *[padding] * (width - len(target))] for target in self.targets]).reshape(-1, width)


NEG_LOG_LIKELIHOOD = ResultOf("diopiCTCLoss", "neg_log_likelihood")
"""The result of the loss that the gradient receives as `neg_log_likelihood`."""

LOG_ALPHA = ResultOf("diopiCTCLoss", "log_alpha", unspecified=7.0)
"""The result of the loss that the gradient receives as `log_alpha`: the log-probabilities of partial label sequences.

The loss leaves some elements open. The suite sets them to 7, so that a gradient that reads them fails.
"""


def ctc_template(
    label: str,
    batch: CtcBatch,
    reduction: Reduction = MEAN,
    *,
    blank: int = 0,
    padding_columns: int | None = 0,
    zero_infinity: bool = False,
    index_dtype: Dtype = Dtype.int64,
    layout: Layout = contiguous,
    out_shape: tuple[int, ...] = (),
    smoke: bool = False,
) -> CaseTemplate:
    """Return a template of the CTC loss or its gradient.

    Args:
        label: The label of the cases without the element type.
        batch: The lengths and targets of the batch.
        reduction: The reduction of the losses.
        blank: The class that separates labels.
        padding_columns: The number of padding labels after the longest target; None for targets in one vector.
        zero_infinity: Whether infinite losses are replaced by 0.
        index_dtype: The element type of targets and lengths.
        layout: The layout of `log_probs` and its gradient.
        out_shape: The shape of a reduced result, () or (1,).
        smoke: Whether the cases are smoke cases.

    Returns:
        The template.
    """
    count, lengths = len(batch.targets), [len(target) for target in batch.targets]
    arguments: Arguments = {
        "_logits": tensor(batch.steps, count, batch.classes, domain=normal(1.5), dtype=Dtype.float64),
        "log_probs": tensor(batch.steps, count, batch.classes, layout=layout, compute=_log_softmax),
        "targets": _constant(batch.target_array(padding_columns, blank), index_dtype),
        "input_lengths": _constant(batch.input_lengths, index_dtype),
        "target_lengths": _constant(lengths, index_dtype),
        **{"blank": blank, "reduction": reduction, "zero_infinity": zero_infinity},
        "grad_output": tensor(*((count,) if reduction == NONE else out_shape)),
        "neg_log_likelihood": tensor(count, compute=NEG_LOG_LIKELIHOOD),
        "log_alpha": tensor(count, batch.steps, 2 * max(lengths) + 1, compute=LOG_ALPHA),
    }
    results = {} if reduction == NONE else {"out": ResultOverride(shape=out_shape)}
    return CaseTemplate(
        label, arguments=arguments, results=results, layout=layout, dtypes=DtypeSelection.all, smoke=smoke
    )


def _log_softmax(values: Values) -> Any:
    """Return the log-softmax of the argument value `_logits` along the last axis, the classes."""
    return special.log_softmax(values["_logits"], -1)


def _constant(values: Any, dtype: Dtype) -> TensorTemplate:
    """Return a template of a tensor with exactly these values."""
    array = np.asarray(values)
    return tensor(*array.shape, dtype=dtype, compute=lambda _: array)


def _labels(count: int, classes: int = 4) -> list[int]:
    """Return labels from 1 to `classes`. Some labels repeat the previous label, which requires a blank between them."""
    return [1 + position * position // 3 % classes for position in range(count)]


def _doubled_labels(classes: int, blank: int, count: int) -> list[int]:
    """Return labels from the whole range of classes, each twice in a row.

    Args:
        classes: The number of classes, including the blank.
        blank: The class of the blank, which is not among the labels.
        count: The number of labels.

    Returns:
        The labels.
    """
    return [
        (blank + 1 + (position // 2 * 2 + 1) * (classes // 5) % (classes - 1)) % classes for position in range(count)
    ]


RAGGED_BATCH = CtcBatch(steps=7, classes=5, targets=[(1, 1, 2), (3, 4), (), (2,)], input_lengths=[7, 4, 5, 6])
"""A batch whose sequences and targets have different lengths."""

IMPOSSIBLE_BATCH = CtcBatch(
    steps=5, classes=4, targets=[(1, 1, 1), (2, 3), (), (2,), (3, 1)], input_lengths=[4, 5, 0, 0, 2]
)
"""A batch in which the samples 0 and 3 have too few time steps for their labels.

Sample 0 has 4 steps but needs 5, because equal neighbors need a blank between them. Sample 3 has one label and no
steps. Sample 2 has neither labels nor steps, which is possible.
"""

SPEECH_BATCH = CtcBatch(
    steps=257, classes=41, targets=[_labels(61, 40), _labels(37, 40), _labels(89, 40)], input_lengths=[257, 131, 251]
)
"""A large batch with lengths as in speech recognition."""

CTC_TEMPLATES = (
    ctc_template("ragged-none", RAGGED_BATCH, NONE, smoke=True),
    ctc_template("ragged-mean", RAGGED_BATCH, smoke=True),
    ctc_template("ragged-sum", RAGGED_BATCH, SUM, out_shape=(1,)),
    ctc_template("joined-mean", RAGGED_BATCH, padding_columns=None, out_shape=(1,)),
    ctc_template("joined-none-int32", RAGGED_BATCH, NONE, padding_columns=None, index_dtype=Dtype.int32),
    ctc_template("spare-sum-int32", RAGGED_BATCH, SUM, padding_columns=3, index_dtype=Dtype.int32),
    ctc_template("transposed-mean", RAGGED_BATCH, layout=transposed),
    ctc_template("strided-none", RAGGED_BATCH, NONE, layout=strided),
    ctc_template("impossible-none", IMPOSSIBLE_BATCH, NONE),
    ctc_template("impossible-mean", IMPOSSIBLE_BATCH),
    ctc_template("impossible-none-zero", IMPOSSIBLE_BATCH, NONE, zero_infinity=True),
    ctc_template("impossible-mean-zero", IMPOSSIBLE_BATCH, zero_infinity=True, smoke=True),
    ctc_template("impossible-sum-zero", IMPOSSIBLE_BATCH, SUM, zero_infinity=True),
    ctc_template("possible-mean-zero", RAGGED_BATCH, zero_infinity=True),
    ctc_template(
        "blank-last", CtcBatch(steps=6, classes=4, targets=[(0, 1, 1), (2, 0)], input_lengths=[6, 5]), NONE, blank=3
    ),
    ctc_template(
        "blank-middle",
        CtcBatch(steps=6, classes=4, targets=[(0, 1, 1), (3, 0)], input_lengths=[6, 5]),
        blank=2,
        padding_columns=None,
    ),
    ctc_template("one-sample", CtcBatch(steps=5, classes=3, targets=[(1, 2)], input_lengths=[5])),
    ctc_template(
        "tight", CtcBatch(steps=5, classes=3, targets=[(1, 2, 2, 1), (1, 2, 1, 2)], input_lengths=[5, 4]), NONE
    ),
    ctc_template(
        "one-step", CtcBatch(steps=3, classes=4, targets=[(1,), (), (3,), (1, 2)], input_lengths=[1, 1, 2, 1]), NONE
    ),
    ctc_template(
        "many-labels", CtcBatch(steps=60, classes=5, targets=[_labels(35), _labels(26)], input_lengths=[60, 41]), NONE
    ),
    ctc_template("no-labels", CtcBatch(steps=4, classes=3, targets=[(), ()], input_lengths=[4, 2]), padding_columns=1),
    ctc_template(
        "long",
        CtcBatch(steps=24, classes=6, targets=[(1, 2, 3, 3, 4, 5, 1, 1), (5, 4, 3, 2)], input_lengths=[24, 17]),
        SUM,
    ),
    *(
        ctc_template(
            f"alphabet-of-{classes}-blank-{blank}",
            CtcBatch(
                steps=19,
                classes=classes,
                targets=[_doubled_labels(classes, blank, 7), _doubled_labels(classes, blank, 4)],
                input_lengths=[19, 13],
            ),
            reduction,
            blank=blank,
            padding_columns=padding_columns,
        ).replace(dtypes=DtypeSelection.leading)
        for classes, blank, reduction, padding_columns in (
            (41, 0, NONE, 0),
            (41, 40, MEAN, None),
            (64, 31, SUM, 2),
            (97, 96, NONE, None),
            (301, 0, MEAN, 0),
        )
    ),
    ctc_template("speech", SPEECH_BATCH).replace(dtypes=(Dtype.float32,), large=True),
    ctc_template("speech-none", SPEECH_BATCH, NONE).replace(dtypes=(Dtype.float32,), large=True),
)
"""The templates that the CTC loss and its gradient have."""

NO_LABELS_REASONS = {"no-labels": "all targets are empty"}
"""Why many wrong results can pass the case with this label (`Case.non_discriminating`)."""


@cases_for("diopiCTCLoss", non_discriminating=NO_LABELS_REASONS)
def ctc_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiCTCLoss`."""
    return expand(prototype, CTC_TEMPLATES)


@cases_for("diopiCTCLossBackward", non_discriminating=NO_LABELS_REASONS)
def ctc_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiCTCLossBackward`. The gradient has the layout of `log_probs`."""
    return expand(prototype, [template.replace(result_layout=template.layout) for template in CTC_TEMPLATES])


LOG_SOFTMAX = ResultOf("diopiLogSoftmax", argument_names={"input": "_logits"}, extra_arguments={"dim": 2})
"""The argument `log_probs` that programs pass: the log-softmax of `_logits` along the axis of classes."""

CaseFacts(saved={"log_probs": LOG_SOFTMAX}).declare("diopiCTCLoss", "diopiCTCLossBackward")
CaseFacts(
    saved={
        "neg_log_likelihood": ResultOf("diopiCTCLoss", "neg_log_likelihood"),
        "log_alpha": ResultOf("diopiCTCLoss", "log_alpha"),
    }
).declare("diopiCTCLossBackward")
