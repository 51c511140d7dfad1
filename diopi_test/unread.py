"""Arguments whose values the standard says nobody reads, in all calls of a function or for some attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Reduction
from diopi_test.baseline import BaselineCase


@dataclass(frozen=True)
class Unread:
    """Arguments that are not read.

    Attributes:
        functions: a regular expression for the functions' names, without "diopi".
        arguments: their names.
        reason: why.
        when: for which values of the other arguments.
    """

    functions: str
    arguments: Sequence[str]
    reason: str
    when: Callable[[Mapping[str, Any]], bool] = lambda arguments: True

    def is_about(self, function: str, argument: str) -> bool:
        """Whether the argument is not read in some calls of the function."""
        return argument in self.arguments and bool(re.fullmatch(f"diopi(?:{self.functions})", function))

    def covers(self, case: BaselineCase, argument: str) -> bool:
        """Whether the argument is not read in this case."""
        return self.is_about(case.function, argument) and self.when(case.arguments)


WINDOWS = ("stride", "padding", "dilation", "ceil_mode")
"""Attributes of sliding windows."""


def _adaptive(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["adaptive"])


def _average(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["mode"] == "avg")


UNREAD = (
    Unread("(Adaptive)?(Max|Avg)?Pool[123]dBackward", ["input"], "its sizes alone count"),
    Unread("GatherBackward|MaskedSelectBackward|NLLLoss(V2)?Backward", ["input"], "its sizes alone count"),
    Unread("MaxPool[123]dBackward", ["kernel_size", *WINDOWS], "the positions say where each gradient goes"),
    Unread(
        "Pool[123]dBackward",
        ["ksize", "exclusive", *WINDOWS],
        "the positions say it",
        lambda arguments: not _average(arguments),
    ),
    Unread(
        "Pool[123]d(Backward)?", ["ksize", "exclusive", *WINDOWS], "the sizes of the result tell the windows", _adaptive
    ),
    Unread(
        "Pool[123]d",
        ["output_size"],
        "the other attributes tell the windows",
        lambda arguments: not _adaptive(arguments),
    ),
    Unread("Pool[123]d(Backward)?", ["dilation", "indices"], "they are for maxima", _average),
    Unread("TriangularSolveBackward", ["b"], "the solution x stands for it"),
    Unread("(Layer|Instance)Norm(GB)?Backward", ["bias"], "no gradient depends on it"),
    Unread("BatchNormGatherStatsWithCounts", ["input"], "its element type alone counts"),
    Unread("BatchNormBackwardReduce", ["weight"], "its sums are those of the normalised input"),
    Unread("BatchNormElemt", ["eps"], "it is in invstd already"),
    Unread(
        "BatchNorm(GatherStatsWithCounts)?",
        ["running_mean", "running_var"],
        "a momentum of 1 leaves nothing of them",
        lambda arguments: bool(arguments["momentum"] == 1 and arguments.get("training", True)),
    ),
    Unread(
        "BatchNormBackwardReduce",
        ["invstd"],
        "the gradient of the weight alone depends on it",
        lambda arguments: not arguments["weight_g"],
    ),
    Unread(
        "BatchNormBackwardReduce",
        ["input", "mean"],
        "the gradient of the bias does not depend on them",
        lambda arguments: not arguments["input_g"] and not arguments["weight_g"],
    ),
    Unread(
        "BatchNormBackward",
        ["running_mean", "running_var", "eps"],
        "in training the saved statistics are used",
        lambda arguments: bool(arguments["training"]),
    ),
    Unread(
        "BatchNormBackward",
        ["save_mean", "save_invstd"],
        "in evaluation the running statistics are used",
        lambda arguments: not arguments["training"],
    ),
    Unread(
        "NLLLossV2Backward",
        ["totalWeight"],
        "only a mean is divided by it",
        lambda arguments: arguments["reduction"] != Reduction.mean,
    ),
    Unread("Embedding", ["padding_idx", "scale_grad_byfreq", "sparse"], "they are for the gradient"),
    Unread("EmbeddingBackward", ["sparse"], "the gradient is dense"),
    Unread("Contiguous", ["memoryFormat"], "it says where the elements lie, which the check of the form sees"),
    Unread("Cdist", ["compute_mode"], "it says how, not what"),
    Unread("CdistBackward", ["cdist"], "the slopes of magnitudes are signs", lambda arguments: arguments["p"] == 1),
    Unread("Cholesky", ["checkerror"], "it says what becomes of errors"),
    Unread("ClipGradNorm", ["error_if_nonfinite"], "it says what becomes of errors"),
    Unread("Conv.*Backward", ["bias_sizes"], "it says whether grad_bias is wanted"),
    Unread("ConvTranspose.*Backward", ["output_padding"], "the sizes of grad_output tell it"),
    Unread("Argmax|Argmin", ["keepdim"], "the shape of the result tells it"),
    Unread("Arange", ["end"], "the length of the result tells it"),
    Unread("Sort|Argsort", ["stable", "pStable"], "the reference is always stable, which is right for either"),
    Unread("Topk|Unique", ["sorted"], "the reference always sorts, which is right for either"),
)
"""What is known of each function; a test confirms it with the reference."""
