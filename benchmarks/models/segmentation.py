"""Segmentation networks, which classify each pixel or each point.

Each public function builds a `Network`: a module with random weights, and a function that returns its training loss.
"""

from __future__ import annotations

import torch
from network import Network, images, transformers_network
from torch import Tensor, nn
from vision import conv_norm, resnet_features

CLASSES = 21
"""The number of classes of pixels."""


class AtSize(nn.Module):
    """A network whose result is enlarged to the size of its input."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.interpolate(self.module(x), size=x.shape[2:], mode="bilinear", align_corners=False)


def segmenter(module: nn.Module, pixels: Tensor, classes: int = CLASSES) -> Network:
    """Return a network that learns the class of each pixel; some pixels have no class."""
    labels = torch.randint(classes, (len(pixels), *pixels.shape[2:]))
    return Network(module, lambda: nn.functional.cross_entropy(module(pixels), labels))


def fcn() -> Network:
    """Return a fully convolutional network with the features of a ResNet (Long et al. 2015)."""
    head = (conv_norm(2048, 512), nn.Dropout(0.1), nn.Conv2d(512, CLASSES, 1))
    return segmenter(AtSize(nn.Sequential(resnet_features(), *head)), images(96))


class Atrous(nn.Module):
    """Convolutions of several dilations and the mean of all pixels, concatenated (Chen et al. 2017)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        dilated = (nn.Conv2d(channels, 256, 3, padding=rate, dilation=rate, bias=False) for rate in (2, 4, 6))
        self.branches = nn.ModuleList([nn.Conv2d(channels, 256, 1, bias=False), *dilated])
        self.mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 256, 1), nn.ReLU())
        self.join = conv_norm(5 * 256, 256, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = nn.functional.interpolate(self.mean(x), size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.join(torch.cat([*(branch(x) for branch in self.branches), mean], 1))


def deeplab() -> Network:
    """Return a network with dilated convolutions of several dilations (Chen et al. 2017)."""
    return segmenter(AtSize(nn.Sequential(resnet_features()[:6], Atrous(1024), nn.Conv2d(256, CLASSES, 1))), images(96))


class UNet(nn.Module):
    """An encoder and a decoder with connections between equal scales (Ronneberger et al. 2015)."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256)) -> None:
        super().__init__()
        pairs = tuple(zip((3, *widths), widths, strict=False))
        self.down = nn.ModuleList(nn.Sequential(conv_norm(*pair), conv_norm(pair[1], pair[1])) for pair in pairs)
        ups = tuple(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(*pair, 2, 2) for pair in ups)
        self.join = nn.ModuleList(conv_norm(pair[0], pair[1]) for pair in ups)
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for number, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if number else x)
            skips.append(x)
        for up, join, skip in zip(self.up, self.join, skips[-2::-1], strict=True):
            x = join(torch.cat([up(x), skip], 1))
        return self.head(x)


def unet() -> Network:
    """Return a U-Net for pictures (Ronneberger et al. 2015)."""
    return segmenter(UNet(), images(64), 2)


def unet3d() -> Network:
    """Return a U-Net for volumes (Çiçek et al. 2016)."""

    class Volumes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv3d(1, 32, 3, padding=1), nn.GroupNorm(8, 32), nn.LeakyReLU())
            self.second = nn.Sequential(nn.Conv3d(32, 64, 3, 2, padding=1), nn.GroupNorm(8, 64), nn.LeakyReLU())
            self.up, self.head = nn.ConvTranspose3d(64, 32, 2, 2), nn.Conv3d(64, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            fine = self.first(x)
            return self.head(torch.cat([fine, self.up(self.second(fine))], 1))

    module, volume, truth = Volumes(), torch.randn(1, 1, 16, 24, 24), torch.rand(1, 3, 16, 24, 24).round()

    def loss() -> Tensor:
        probabilities = module(volume).sigmoid()
        return (
            1
            - (
                2 * (probabilities * truth).sum((2, 3, 4)) / (probabilities.sum((2, 3, 4)) + truth.sum((2, 3, 4)))
            ).mean()
        )

    return Network(module, loss)


def pspnet() -> Network:
    """Return a network with means over grids of several sizes (Zhao et al. 2017)."""

    class Pyramid(nn.Module):
        """Means over grids of several sizes (Zhao et al. 2017)."""

        def __init__(self) -> None:
            super().__init__()
            self.scales = nn.ModuleList(
                nn.Sequential(nn.AdaptiveAvgPool2d(size), nn.Conv2d(1024, 256, 1)) for size in (1, 2, 3, 6)
            )

        def forward(self, x: Tensor) -> Tensor:
            scaled = [
                nn.functional.interpolate(scale(x), size=x.shape[2:], mode="bilinear", align_corners=True)
                for scale in self.scales
            ]
            return torch.cat([x, *scaled], 1)

    return segmenter(
        AtSize(nn.Sequential(resnet_features()[:6], Pyramid(), conv_norm(2048, 512), nn.Conv2d(512, CLASSES, 1))),
        images(96),
    )


def pointnet() -> Network:
    """Return a classifier of points in space (Qi et al. 2017)."""

    class PointNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.local = nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU())
            self.wide = nn.Sequential(
                nn.Conv1d(64, 128, 1), nn.BatchNorm1d(128), nn.ReLU(), nn.Conv1d(128, 1024, 1), nn.BatchNorm1d(1024)
            )
            self.head = nn.Sequential(nn.Conv1d(1088, 512, 1), nn.BatchNorm1d(512), nn.ReLU(), nn.Conv1d(512, 50, 1))

        def forward(self, points: Tensor) -> Tensor:
            local = self.local(points)
            whole = self.wide(local).max(-1, keepdim=True).values
            return self.head(torch.cat([local, whole.expand(-1, -1, points.shape[-1])], 1))

    module, points, labels = PointNet(), torch.randn(2, 3, 256), torch.randint(50, (2, 256))
    return Network(module, lambda: nn.functional.cross_entropy(module(points), labels), "adam")


def segformer() -> Network:
    """Return a transformer that learns the class of each pixel (Xie et al. 2021)."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(depths=[1, 1, 1, 1], num_labels=150)
    return transformers_network(
        SegformerForSemanticSegmentation, config, pixel_values=images(64), labels=torch.randint(150, (2, 64, 64))
    )


def sam() -> Network:
    """Return the picture encoder of Segment Anything (Kirillov et al. 2023)."""
    from transformers import SamVisionConfig, SamVisionModel

    config = SamVisionConfig(num_hidden_layers=2, image_size=128, global_attn_indexes=[1], window_size=7)
    module, pixels = SamVisionModel._from_config(config, attn_implementation="eager"), images(128, 1)
    return Network(module, lambda: module(pixels).last_hidden_state.square().mean())


NETWORKS = {function.__name__: function for function in (deeplab, fcn, pointnet, pspnet, sam, segformer, unet, unet3d)}
"""The functions that build the networks, by name."""
