"""Small networks of the same kinds as those of the models level, in evaluation mode.

They consist of the same parts as those of `benchmarks/models`. Widths are arguments, so that the published networks can
be built from the same code.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from diopi_engine.compiling import BATCH, Input


@final
@dataclass(frozen=True, kw_only=True)
class ZooNetwork:
    """A network and a description of its inputs.

    Attributes:
        module: the module in evaluation mode, with float32 weights.
        inputs: the inputs in the form that `diopi_engine.compile` takes.
        vocabulary: the exclusive upper bound of integer inputs.
        outputs: the names of the results.
    """

    module: nn.Module
    inputs: Sequence[Input]
    outputs: Sequence[str]
    vocabulary: int = 1

    def draw_samples(self, count: int, seed: int = 0) -> list[Tensor]:
        """Return random inputs for `count` samples: normally distributed numbers, or integers below `vocabulary`."""
        generator = torch.Generator().manual_seed(seed)
        shapes = [
            [count if size == BATCH else int(size) for size in specification.shape] for specification in self.inputs
        ]
        return [
            torch.randn(shape, generator=generator)
            if specification.dtype == "float32"
            else torch.randint(self.vocabulary, shape, generator=generator)
            for specification, shape in zip(self.inputs, shapes, strict=True)
        ]


def conv_norm(
    inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1, act: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """Return a convolution, batch normalization and activation.

    Args:
        inputs: the number of input channels.
        outputs: the number of output channels.
        kernel: the size of the kernel along both axes; the padding is half of it.
        stride: the stride along both axes.
        groups: the number of groups of channels.
        act: the class of the activation.
    """
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), act(inplace=True) if act is not nn.GELU else act())


class Residual(nn.Module):
    """The sum of a branch and a shortcut, optionally followed by an activation."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module | None = None, last: nn.Module | None = None) -> None:
        super().__init__()
        self.branch, self.shortcut, self.last = branch, shortcut or nn.Identity(), last or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of the branch and the shortcut of x, after the activation."""
        return self.last(self.branch(x) + self.shortcut(x))


def basic_block(inputs: int, width: int, stride: int) -> Residual:
    """Return a residual block of two 3 × 3 convolutions (He et al. 2015), from `inputs` to `width` channels."""
    last = nn.Sequential(nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))
    shortcut = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))
    branch = nn.Sequential(conv_norm(inputs, width, 3, stride), last)
    return Residual(branch, shortcut if stride > 1 else None, nn.ReLU(inplace=True))


def resnet(width: int = 64, stages: int = 4, blocks: int = 2, classes: int = 1000) -> nn.Sequential:
    """Return ResNet-18 (He et al. 2015) or a smaller network of the same form.

    Each stage has `blocks` blocks. Each stage after the first one doubles the channels.
    """
    widths = [width << stage for stage in range(stages)]
    firsts = [
        basic_block(inputs, outputs, 1 if inputs == outputs else 2)
        for inputs, outputs in itertools.pairwise([width, *widths])
    ]
    body = [
        block
        for first, width in zip(firsts, widths, strict=True)
        for block in (first, *_repeat_block(width, blocks - 1))
    ]
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes))
    return nn.Sequential(conv_norm(3, width, 7, 2), nn.MaxPool2d(3, 2, 1), *body, *head)


def _repeat_block(width: int, count: int) -> list[Residual]:
    """Return `count` residual blocks whose input and output both have `width` channels."""
    return [basic_block(width, width, 1) for _ in range(count)]


class Transformer(nn.Module):
    """Token embeddings, and a pre-normalized block of attention and a perceptron (Vaswani et al. 2017)."""

    def __init__(self, vocabulary: int, length: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(length, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.deep = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return one vector per token, for tokens of shape [batch, length]."""
        x = self.tokens(tokens) + self.positions
        split = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.joint(self.norms[0](x)).chunk(3, -1)
        )
        mixed = nn.functional.scaled_dot_product_attention(*split)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.deep(self.norms[1](x))


def perceptron(*widths: int) -> nn.Sequential:
    """Return linear layers with ReLU between them."""
    layers = [layer for pair in itertools.pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class EmbeddingTables(nn.Module):
    """Embedding tables with one row per category, one table per field."""

    def __init__(self, rows: int, width: int, fields: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(fields))

    def forward(self, categories: Tensor) -> Tensor:
        """Return the embedding rows of the categories, which have shape [batch, fields]."""
        return torch.stack([table(categories[:, field]) for field, table in enumerate(self.tables)], 1)


class Dlrm(nn.Module):
    """A recommender with products of all pairs of rows (Naumov et al. 2019)."""

    def __init__(self, rows: int, fields: int, width: int, hidden: Sequence[int]) -> None:
        super().__init__()
        pairs = fields * (fields + 1) // 2
        self.bottom, self.tables = perceptron(13, *hidden, width), EmbeddingTables(rows, width, fields)
        self.top = perceptron(width + pairs, *hidden, 1)
        self.pairs: Tensor
        self.register_buffer("pairs", torch.tril_indices(fields + 1, fields + 1, -1))

    def forward(self, numbers: Tensor, chosen: Tensor) -> Tensor:
        """Return the prediction for numeric features and chosen categories."""
        dense = self.bottom(numbers)
        rows = torch.cat([dense.unsqueeze(1), self.tables(chosen)], 1)
        first, second = self.pairs
        return self.top(torch.cat([dense, (rows @ rows.mT)[:, first, second]], 1))


class LstmNetwork(nn.Module):
    """An LSTM and a linear layer for each step."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.cells, self.out = nn.LSTM(inputs, width, batch_first=True), nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of every time step."""
        return self.out(self.cells(x)[0])


class Detector(nn.Module):
    """A detector that predicts a box and scores for each cell of a grid (Liu et al. 2016).

    Args:
        width: the number of channels of the first layer.
        size: the height and width of the pictures; a cell has 8 × 8 pixels.
    """

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        backbone = (conv_norm(3, width, 3, 2), conv_norm(width, 2 * width, 3, 2), conv_norm(2 * width, 4 * width, 3, 2))
        self.backbone = nn.Sequential(*backbone)
        self.boxes, self.scores = nn.Conv2d(4 * width, 4, 1), nn.Conv2d(4 * width, 1, 1)
        positions = (torch.arange(size // 8) + 0.5) * 8 / size
        self.centers: Tensor
        self.register_buffer("centers", torch.cartesian_prod(positions, positions).flip(-1))

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Return the corners of the boxes relative to the picture, and their scores."""
        x = self.backbone(pictures)
        left, opposite = self.boxes(x).sigmoid().flatten(2).mT.split(2, -1)
        boxes = torch.cat([self.centers - left / 4, self.centers + opposite / 4], -1)
        return boxes, self.scores(x).sigmoid().flatten(1)


def with_trained_statistics(module: nn.Module) -> nn.Module:
    """Set normalization statistics and scales like those of a trained module; return the module in evaluation mode."""
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.normal_(norm.running_mean, std=0.2)  # type: ignore[arg-type]  # it has statistics
            nn.init.uniform_(norm.running_var, 0.5, 1.5)  # type: ignore[arg-type]  # it has statistics
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, std=0.2)
    return module.eval()


def _image_inputs(size: int) -> list[Input]:
    """Return the description of an input of square RGB images."""
    return [Input("pictures", (BATCH, 3, size, size), layout="NCHW")]


def _recommender() -> ZooNetwork:
    """Return a small recommender (DLRM) with four categorical fields."""
    fields = 4
    inputs = [Input("numbers", (BATCH, 13)), Input("chosen", (BATCH, fields), dtype="int64")]
    return ZooNetwork(module=Dlrm(50, fields, 16, (32, 16)), inputs=inputs, outputs=["clicked"], vocabulary=50)


_BUILDERS: Mapping[str, Callable[[], ZooNetwork]] = {
    "resnet": lambda: ZooNetwork(module=resnet(8, 2, 1, 10), inputs=_image_inputs(32), outputs=["classes"]),
    "transformer": lambda: ZooNetwork(
        module=Transformer(50, 8, 32, 4),
        inputs=[Input("tokens", (BATCH, 8), dtype="int64")],
        outputs=["states"],
        vocabulary=50,
    ),
    "recommender": _recommender,
    "other_recommender": _recommender,
    "lstm": lambda: ZooNetwork(
        module=LstmNetwork(8, 16, 4), inputs=[Input("steps", (BATCH, 5, 8))], outputs=["values"]
    ),
    "detector": lambda: ZooNetwork(module=Detector(8, 32), inputs=_image_inputs(32), outputs=["boxes", "scores"]),
}
"""The function that builds a network, by its name."""


def build(name: str) -> ZooNetwork:
    """Return the network with this name; the name determines its weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int.from_bytes(name.encode(), "little") % 2**63)
        return build_seeded(_BUILDERS[name])


def build_seeded(builder: Callable[[], ZooNetwork]) -> ZooNetwork:
    """Return the network of a builder, with weights drawn from the current state of PyTorch's generator."""
    network = builder()
    with_trained_statistics(network.module)
    return network


def run_module(module: nn.Module, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of a module as a list, whatever structure it returns."""
    with torch.no_grad():
        returned = module(*inputs)
    return [returned] if isinstance(returned, Tensor) else [*returned]
