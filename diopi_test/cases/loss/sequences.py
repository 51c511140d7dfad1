"""Cases of connectionist temporal classification (CTC) and its gradient."""

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
        steps: the number T of time steps of the tensor `log_probs`.
        classes: the number C of classes, including the blank.
        targets: the labels of each sample; no label is the blank.
        input_lengths: the number of time steps of each sample, at most `steps`.
    """

    steps: int
    classes: int
    targets: Sequence[Sequence[int]]
    input_lengths: Sequence[int]

    def table(self, spare: int | None, blank: int) -> Any:
        """Return the targets as an array.

        Args:
            spare: the number of padding labels after the longest target; None for targets without padding.
            blank: the class of the blank.

        Returns:
            The padded targets of shape (N, S), or all targets one after another in shape (S). The padding is a class
            that is not the blank.
        """
        if spare is None:
            return np.concatenate([np.array(target, np.int64) for target in self.targets])
        width = max(map(len, self.targets)) + spare
        padding = (blank + 1) % self.classes
        return np.array([[*target, *[padding] * (width - len(target))] for target in self.targets]).reshape(-1, width)


LIKELIHOODS = ResultOf("diopiCTCLoss", "neg_log_likelihood")
"""The result of the loss that the gradient receives as `neg_log_likelihood`."""

ALPHAS = ResultOf("diopiCTCLoss", "log_alpha", unspecified=7.0)
"""The result of the loss that the gradient receives as `log_alpha`: the log-probabilities of partial paths.

Elements that the loss leaves open are 7.
"""


def alignment_template(
    label: str,
    samples: CtcBatch,
    reduction: Reduction = MEAN,
    *,
    blank: int = 0,
    spare: int | None = 0,
    zero_infinity: bool = False,
    index: Dtype = Dtype.int64,
    layout: Layout = contiguous,
    out: tuple[int, ...] = (),
    smoke: bool = False,
) -> CaseTemplate:
    """Return a template of the CTC loss or its gradient.

    Args:
        label: the label of the cases.
        samples: the lengths and targets of the batch.
        reduction: how the losses are reduced.
        blank: the class that separates labels.
        spare: the number of padding labels after the longest target; None to concatenate the targets in a vector.
        zero_infinity: whether infinite losses are replaced by 0.
        index: the element type of targets and lengths.
        layout: the layout of log_probs and their gradient.
        out: the shape of a reduced result.
        smoke: whether the cases are smoke cases.

    Returns:
        The template.
    """
    count, lengths = len(samples.targets), [len(target) for target in samples.targets]
    arguments: Arguments = {
        "_logits": tensor(samples.steps, count, samples.classes, domain=normal(1.5), dtype=Dtype.float64),
        "log_probs": tensor(samples.steps, count, samples.classes, layout=layout, compute=_log_softmax),
        "targets": _constant(samples.table(spare, blank), index),
        "input_lengths": _constant(samples.input_lengths, index),
        "target_lengths": _constant(lengths, index),
        **{"blank": blank, "reduction": reduction, "zero_infinity": zero_infinity},
        "grad_output": tensor(*((count,) if reduction == NONE else out)),
        "neg_log_likelihood": tensor(count, compute=LIKELIHOODS),
        "log_alpha": tensor(count, samples.steps, 2 * max(lengths) + 1, compute=ALPHAS),
    }
    results = {} if reduction == NONE else {"out": ResultOverride(shape=out)}
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
    """Return `count` labels from 1 to `classes`, some of which repeat the previous label."""
    return [1 + number * number // 3 % classes for number in range(count)]


def _doubled_labels(classes: int, blank: int, count: int) -> list[int]:
    """Return `count` labels from the whole range of classes, each twice in a row; no label is the blank."""
    return [(blank + 1 + (number // 2 * 2 + 1) * (classes // 5) % (classes - 1)) % classes for number in range(count)]


RAGGED = CtcBatch(steps=7, classes=5, targets=[(1, 1, 2), (3, 4), (), (2,)], input_lengths=[7, 4, 5, 6])
"""A batch of sequences and targets of different lengths."""

IMPOSSIBLE = CtcBatch(steps=5, classes=4, targets=[(1, 1, 1), (2, 3), (), (2,), (3, 1)], input_lengths=[4, 5, 0, 0, 2])
"""A batch in which samples 0 and 3 have too few time steps for their labels; sample 2 has neither labels nor steps."""

SPEECH = CtcBatch(
    steps=257, classes=41, targets=[_labels(61, 40), _labels(37, 40), _labels(89, 40)], input_lengths=[257, 131, 251]
)
"""A large batch with lengths as in speech recognition."""

ALIGNMENTS = (
    alignment_template("ragged-none", RAGGED, NONE, smoke=True),
    alignment_template("ragged-mean", RAGGED, smoke=True),
    alignment_template("ragged-sum", RAGGED, SUM, out=(1,)),
    alignment_template("joined-mean", RAGGED, spare=None, out=(1,)),
    alignment_template("joined-none-int32", RAGGED, NONE, spare=None, index=Dtype.int32),
    alignment_template("spare-sum-int32", RAGGED, SUM, spare=3, index=Dtype.int32),
    alignment_template("transposed-mean", RAGGED, layout=transposed),
    alignment_template("strided-none", RAGGED, NONE, layout=strided),
    alignment_template("impossible-none", IMPOSSIBLE, NONE),
    alignment_template("impossible-mean", IMPOSSIBLE),
    alignment_template("impossible-none-zero", IMPOSSIBLE, NONE, zero_infinity=True),
    alignment_template("impossible-mean-zero", IMPOSSIBLE, zero_infinity=True, smoke=True),
    alignment_template("impossible-sum-zero", IMPOSSIBLE, SUM, zero_infinity=True),
    alignment_template("possible-mean-zero", RAGGED, zero_infinity=True),
    alignment_template(
        "blank-last", CtcBatch(steps=6, classes=4, targets=[(0, 1, 1), (2, 0)], input_lengths=[6, 5]), NONE, blank=3
    ),
    alignment_template(
        "blank-middle",
        CtcBatch(steps=6, classes=4, targets=[(0, 1, 1), (3, 0)], input_lengths=[6, 5]),
        blank=2,
        spare=None,
    ),
    alignment_template("one-sample", CtcBatch(steps=5, classes=3, targets=[(1, 2)], input_lengths=[5])),
    alignment_template(
        "tight", CtcBatch(steps=5, classes=3, targets=[(1, 2, 2, 1), (1, 2, 1, 2)], input_lengths=[5, 4]), NONE
    ),
    alignment_template(
        "one-step", CtcBatch(steps=3, classes=4, targets=[(1,), (), (3,), (1, 2)], input_lengths=[1, 1, 2, 1]), NONE
    ),
    alignment_template(
        "many-labels", CtcBatch(steps=60, classes=5, targets=[_labels(35), _labels(26)], input_lengths=[60, 41]), NONE
    ),
    alignment_template("no-labels", CtcBatch(steps=4, classes=3, targets=[(), ()], input_lengths=[4, 2]), spare=1),
    alignment_template(
        "long",
        CtcBatch(steps=24, classes=6, targets=[(1, 2, 3, 3, 4, 5, 1, 1), (5, 4, 3, 2)], input_lengths=[24, 17]),
        SUM,
    ),
    *(
        alignment_template(
            f"alphabet-of-{classes}-blank-{blank}",
            CtcBatch(
                steps=19,
                classes=classes,
                targets=[_doubled_labels(classes, blank, 7), _doubled_labels(classes, blank, 4)],
                input_lengths=[19, 13],
            ),
            reduction,
            blank=blank,
            spare=spare,
        ).replace(dtypes=DtypeSelection.leading)
        for classes, blank, reduction, spare in (
            (41, 0, NONE, 0),
            (41, 40, MEAN, None),
            (64, 31, SUM, 2),
            (97, 96, NONE, None),
            (301, 0, MEAN, 0),
        )
    ),
    alignment_template("speech", SPEECH).replace(dtypes=(Dtype.float32,), large=True),
    alignment_template("speech-none", SPEECH, NONE).replace(dtypes=(Dtype.float32,), large=True),
)
"""The templates of the CTC loss and of its gradient."""

NO_LABELS_REASONS = {"no-labels": "all targets are empty"}
"""The reason why many wrong results can pass a case (`non_discriminating`), by label."""


@cases_for("diopiCTCLoss", non_discriminating=NO_LABELS_REASONS)
def ctc_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the CTC loss."""
    return expand(prototype, ALIGNMENTS)


@cases_for("diopiCTCLossBackward", non_discriminating=NO_LABELS_REASONS)
def ctc_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradient of the CTC loss."""
    return expand(prototype, [alignment.replace(result_layout=alignment.layout) for alignment in ALIGNMENTS])


LOG_SOFTMAX = ResultOf("diopiLogSoftmax", argument_names={"input": "_logits"}, extra_arguments={"dim": 2})
"""The function result that provides log probabilities: log-softmax of the argument `_logits`."""

CaseFacts(saved={"log_probs": LOG_SOFTMAX}).declare("diopiCTCLoss", "diopiCTCLossBackward")
CaseFacts(
    saved={
        "neg_log_likelihood": ResultOf("diopiCTCLoss", "neg_log_likelihood"),
        "log_alpha": ResultOf("diopiCTCLoss", "log_alpha"),
    }
).declare("diopiCTCLossBackward")
