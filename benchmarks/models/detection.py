"""Object detection networks.

Each public function builds a `Network`: a module with random weights, and a function that returns its training loss.
"""

from __future__ import annotations

import torch
from network import Network, images
from torch import Tensor, nn
from vision import conv_norm, resnet_features

COCO = 80
"""The number of classes of objects in the data set COCO."""


class Pyramid(nn.Module):
    """A feature pyramid: maps of several scales from a backbone, to which coarser maps are added (Lin et al. 2017)."""

    def __init__(self) -> None:
        super().__init__()
        features = resnet_features()
        self.stages = nn.ModuleList((features[:5], features[5:6], features[6:]))
        self.lateral = nn.ModuleList(nn.Conv2d(channels, 256, 1) for channels in (512, 1024, 2048))
        self.smooth = nn.ModuleList(nn.Conv2d(256, 256, 3, padding=1) for _ in range(3))

    def forward(self, x: Tensor) -> list[Tensor]:
        maps = []
        for stage, lateral in zip(self.stages, self.lateral, strict=True):
            x = stage(x)
            maps.append(lateral(x))
        for finer, coarser in ((1, 2), (0, 1)):
            maps[finer] = maps[finer] + nn.functional.interpolate(maps[coarser], size=maps[finer].shape[2:])
        return [smooth(level) for smooth, level in zip(self.smooth, maps, strict=True)]


def retinanet() -> Network:
    """Return a dense detector with the focal loss (Lin et al. 2017)."""

    class RetinaNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pyramid = Pyramid()
            tower = (nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True))
            self.classes = nn.Sequential(*tower, nn.Conv2d(256, 9 * COCO, 3, padding=1))
            self.boxes = nn.Sequential(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 36, 3, padding=1))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            maps = self.pyramid(x)
            classes = torch.cat(
                [self.classes(level).permute(0, 2, 3, 1).reshape(len(x), -1, COCO) for level in maps], 1
            )
            return classes, torch.cat(
                [self.boxes(level).permute(0, 2, 3, 1).reshape(len(x), -1, 4) for level in maps], 1
            )

    module, pixels = RetinaNet(), images(64)
    anchors = 9 * (64 + 16 + 4)
    targets, boxes = (torch.rand(2, anchors, COCO) < 0.01).float(), torch.randn(2, anchors, 4)

    def loss() -> Tensor:
        logits, offsets = module(pixels)
        entropy = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        matching = (logits.sigmoid() * targets + (1 - logits.sigmoid()) * (1 - targets)).detach()
        is_object = targets.amax(-1) > 0
        return ((1 - matching) ** 2 * entropy).sum() + nn.functional.smooth_l1_loss(
            offsets[is_object], boxes[is_object], beta=0.1
        )

    return Network(module, loss)


def ssd() -> Network:
    """Return a detector with boxes from maps of several scales, trained with hard negative mining (Liu et al. 2016)."""

    class Ssd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            stem = (
                conv_norm(3, 64),
                nn.MaxPool2d(2),
                conv_norm(64, 128),
                nn.MaxPool2d(2),
                conv_norm(128, 256),
                nn.MaxPool2d(2),
            )
            self.stages = nn.ModuleList(
                (nn.Sequential(*stem, conv_norm(256, 512)), conv_norm(512, 1024, 3, 2), conv_norm(1024, 512, 3, 2))
            )
            self.classes = nn.ModuleList(nn.Conv2d(width, 4 * 21, 3, padding=1) for width in (512, 1024, 512))
            self.boxes = nn.ModuleList(nn.Conv2d(width, 16, 3, padding=1) for width in (512, 1024, 512))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            classes, boxes = [], []
            for stage, classify, place in zip(self.stages, self.classes, self.boxes, strict=True):
                x = stage(x)
                classes.append(classify(x).permute(0, 2, 3, 1).reshape(len(x), -1, 21))
                boxes.append(place(x).permute(0, 2, 3, 1).reshape(len(x), -1, 4))
            return torch.cat(classes, 1), torch.cat(boxes, 1)

    module, pixels = Ssd(), images(64)
    anchors = 4 * (64 + 16 + 4)
    labels, truth = torch.randint(21, (2, anchors)), torch.randn(2, anchors, 4)

    def loss() -> Tensor:
        logits, boxes = module(pixels)
        entropy = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        hardest, _ = entropy.topk(100)
        return hardest.mean() + nn.functional.smooth_l1_loss(boxes, truth)

    return Network(module, loss)


def yolo() -> Network:
    """Return a detector with a grid of boxes, and the activations and blocks of later YOLO versions."""

    def block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(conv_norm(inputs, outputs, 3, 2, act=nn.SiLU), conv_norm(outputs, outputs, 1, act=nn.SiLU))

    class Pooled(nn.Module):
        """Maxima of several windows, concatenated."""

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([x, *(nn.functional.max_pool2d(x, size, 1, size // 2) for size in (5, 9, 13))], 1)

    backbone = (
        block(3, 64),
        block(64, 128),
        block(128, 256),
        block(256, 512),
        Pooled(),
        conv_norm(2048, 512, 1, act=nn.SiLU),
    )
    module = nn.Sequential(*backbone, nn.Conv2d(512, 3 * 85, 1))
    pixels, truth = images(96), torch.rand(2, 3, 85, 6, 6)

    def loss() -> Tensor:
        predictions = module(pixels).unflatten(1, (3, 85))
        center, size = predictions[:, :, :2].sigmoid(), predictions[:, :, 2:4].clamp(max=4).exp()
        boxes = nn.functional.mse_loss(torch.cat([center, size], 2), truth[:, :, :4])
        return boxes + nn.functional.binary_cross_entropy_with_logits(predictions[:, :, 4:], truth[:, :, 4:])

    return Network(module, loss)


def centernet() -> Network:
    """Return a detector that finds the peaks of a map of object centers (Zhou et al. 2019)."""
    features = resnet_features()
    ups = [
        layer
        for inputs in (2048, 256)
        for layer in (nn.ConvTranspose2d(inputs, 256, 4, 2, 1), nn.BatchNorm2d(256), nn.ReLU())
    ]
    module = nn.Sequential(features, *ups, conv_norm(256, 64), nn.Conv2d(64, COCO, 1))
    pixels, heat = images(64), torch.rand(2, COCO, 8, 8)

    def loss() -> Tensor:
        scores = module(pixels).sigmoid().clamp(1e-4, 1 - 1e-4)
        return -((1 - scores) ** 2 * heat * scores.log() + (1 - heat) ** 4 * scores**2 * (1 - scores).log()).mean()

    return Network(module, loss)


def yolos() -> Network:
    """Return a vision transformer that detects objects."""
    from transformers import YolosConfig, YolosModel

    module = YolosModel._from_config(
        YolosConfig(
            num_hidden_layers=1, image_size=[64, 64], hidden_size=192, num_attention_heads=3, intermediate_size=768
        ),
        attn_implementation="eager",
    )
    pixels = images(64)
    return Network(module, lambda: module(pixel_values=pixels).last_hidden_state.square().mean())


def detr() -> Network:
    """Return a detector with a transformer on top of a convolutional backbone."""
    from transformers import DetrConfig, DetrModel, ResNetConfig

    backbone = ResNetConfig(depths=[1, 1, 1, 1], out_features=["stage4"])
    config = DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone,
        encoder_layers=1,
        decoder_layers=1,
    )
    module, pixels = DetrModel._from_config(config, attn_implementation="eager"), images(64)
    return Network(module, lambda: module(pixel_values=pixels).last_hidden_state.square().mean())


def deformable_detr() -> Network:
    """Return a transformer detector with deformable attention."""
    from transformers import DeformableDetrConfig, DeformableDetrModel, ResNetConfig

    backbone = ResNetConfig(depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"])
    config = DeformableDetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone,
        encoder_layers=1,
        decoder_layers=1,
    )
    module, pixels = DeformableDetrModel._from_config(config, attn_implementation="eager"), images(64)
    return Network(module, lambda: module(pixel_values=pixels).last_hidden_state.square().mean())


NETWORKS = {function.__name__: function for function in (centernet, deformable_detr, detr, retinanet, ssd, yolo, yolos)}
"""The functions that build the networks, by name."""
