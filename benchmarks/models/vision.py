"""Networks that classify pictures, and related networks.

Each public function builds a `Network`: a module with random weights, and a function that returns its training loss.
"""

from __future__ import annotations

import torch
from network import Network, classifier, images, transformers_network
from torch import Tensor, nn

from diopi_engine.conformance.models.zoo import Residual, conv_norm, resnet

CLASSES = 1000
"""The number of classes of pictures."""


class ConcatenatedBranches(nn.Module):
    """A layer that concatenates the results of several branches along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def head(channels: int) -> tuple[nn.Module, ...]:
    """Return the layers of a classifier: the mean of each channel, and a linear layer."""
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)


def bottleneck(inputs: int, width: int, stride: int, groups: int = 1) -> Residual:
    """Return a bottleneck block of ResNet or ResNeXt.

    Args:
        inputs: the number of input channels.
        width: the number of channels in the block; the result has four times as many.
        stride: the stride of the 3 × 3 convolution.
        groups: the number of groups of channels of this convolution.
    """
    last = nn.Sequential(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
    branch = nn.Sequential(conv_norm(inputs, width, 1), conv_norm(width, width, 3, stride, groups), last)
    shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
    return Residual(branch, shortcut if stride > 1 or inputs != 4 * width else None, nn.ReLU(inplace=True))


def resnet_features(groups: int = 1) -> nn.Sequential:
    """Return a stem and four stages with one or two blocks each, which reduce the size by 32."""
    stages = [bottleneck(64, 64, 1, groups), bottleneck(256, 64, 1, groups)]
    stages += [bottleneck(4 * width // 2, width, 2, groups) for width in (128, 256, 512)]
    return nn.Sequential(conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), *stages)


def resnet50() -> Network:
    """Return a ResNet with bottleneck blocks (He et al. 2016)."""
    return classifier(nn.Sequential(resnet_features(), *head(2048)), images(112), CLASSES)


def resnext() -> Network:
    """Return a ResNeXt, whose bottleneck blocks have grouped convolutions (Xie et al. 2017)."""
    return classifier(nn.Sequential(resnet_features(32), *head(2048)), images(64), CLASSES)


def resnet18() -> Network:
    """Return a ResNet with plain blocks, for pictures and weights in channels-last order (He et al. 2016)."""
    module = resnet(64, 4, 1, CLASSES).to(memory_format=torch.channels_last)
    return classifier(module, images(96).to(memory_format=torch.channels_last), CLASSES)


def vgg16() -> Network:
    """Return a VGG network of 3 × 3 convolutions (Simonyan and Zisserman 2015)."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 64), (64, 128), (128, 256), (256, 512), (512, 512)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    last = [nn.Flatten(), nn.Linear(512, 1024), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(1024, CLASSES)]
    return classifier(nn.Sequential(*layers, *last), images(32), CLASSES)


def alexnet() -> Network:
    """Return an AlexNet (Krizhevsky et al. 2012)."""
    features = [nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2)]
    features += [nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2)]
    features += [nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(384, 256, 3, padding=1)]
    module = nn.Sequential(*features, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((3, 3)), nn.Flatten(), nn.Dropout())
    return classifier(module.append(nn.Linear(2304, CLASSES)), images(127), CLASSES)


def inverted_residual_block(
    inputs: int, outputs: int, stride: int, act: type[nn.Module], expansion: int = 6
) -> nn.Module:
    """Return an inverted residual block of MobileNetV2 (Sandler et al. 2018).

    Args:
        inputs: the number of input channels.
        outputs: the number of output channels.
        stride: the stride of the depthwise convolution.
        act: the class of the activation.
        expansion: the number of channels in the block for each input channel.
    """
    inner = inputs * expansion
    last = nn.Sequential(nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
    branch = nn.Sequential(conv_norm(inputs, inner, 1, act=act), conv_norm(inner, inner, 3, stride, inner, act), last)
    return Residual(branch) if stride == 1 and inputs == outputs else branch


def mobilenet_v2() -> Network:
    """Return a MobileNetV2 with inverted residual blocks (Sandler et al. 2018)."""
    widths = ((32, 24, 2), (24, 24, 1), (24, 32, 2), (32, 64, 2), (64, 96, 1), (96, 160, 2), (160, 320, 1))
    blocks = [inverted_residual_block(*width, nn.ReLU6) for width in widths]
    stem, last = conv_norm(3, 32, 3, 2, act=nn.ReLU6), conv_norm(320, 1280, 1, act=nn.ReLU6)
    return classifier(nn.Sequential(stem, *blocks, last, *head(1280)), images(96), CLASSES)


class Excitation(nn.Module):
    """A block that scales each channel by a function of the channel means (Hu et al. 2018)."""

    def __init__(self, channels: int, inner: int, act: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        reduce, widen = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), reduce, act, widen, gate)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale(x)


def mobilenet_v3() -> Network:
    """Return a MobileNetV3 with hard activations and scaled channels (Howard et al. 2019)."""

    def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
        inner = 4 * inputs
        depthwise = conv_norm(inner, inner, 5, stride, inner, nn.Hardswish)
        excitation = Excitation(inner, inner // 4, nn.ReLU(), nn.Hardsigmoid())
        return nn.Sequential(
            conv_norm(inputs, inner, 1, act=nn.Hardswish), depthwise, excitation, nn.Conv2d(inner, outputs, 1)
        )

    blocks = [block(16, 24, 2), block(24, 40, 2), block(40, 112, 2), block(112, 160, 2)]
    module = nn.Sequential(conv_norm(3, 16, 3, 2, act=nn.Hardswish), *blocks, *head(160))
    return classifier(module, images(96), CLASSES)


def efficientnet() -> Network:
    """Return an EfficientNet (Tan and Le 2019)."""

    def block(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Sequential:
        inner = 6 * inputs
        depthwise = conv_norm(inner, inner, kernel, stride, inner, nn.SiLU)
        excitation = Excitation(inner, inputs // 4, nn.SiLU(), nn.Sigmoid())
        last = nn.Sequential(nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        return nn.Sequential(conv_norm(inputs, inner, 1, act=nn.SiLU), depthwise, excitation, last)

    blocks = [
        block(16, 24, 3, 2),
        block(24, 40, 5, 2),
        block(40, 80, 3, 2),
        block(80, 112, 5, 1),
        block(112, 192, 5, 2),
    ]
    module = nn.Sequential(
        conv_norm(3, 16, 3, 2, act=nn.SiLU), *blocks, conv_norm(192, 1280, 1, act=nn.SiLU), *head(1280)
    )
    return classifier(module, images(96), CLASSES)


class Dense(nn.Module):
    """A layer of DenseNet: the input and the result, concatenated (Huang et al. 2017)."""

    def __init__(self, channels: int, growth: int = 32) -> None:
        super().__init__()
        first = (nn.BatchNorm2d(channels), nn.ReLU(inplace=True), nn.Conv2d(channels, 4 * growth, 1, bias=False))
        second = (
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(inplace=True),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )
        self.layers = nn.Sequential(*first, *second)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.layers(x)], 1)


def densenet() -> Network:
    """Return a DenseNet, whose layers read the results of all earlier layers of a block (Huang et al. 2017)."""

    def transition(channels: int) -> nn.Sequential:
        reduce = nn.Conv2d(channels, channels // 2, 1, bias=False)
        return nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(inplace=True), reduce, nn.AvgPool2d(2))

    blocks = [Dense(64), Dense(96), transition(128), Dense(64), Dense(96), transition(128), Dense(64), Dense(96)]
    return classifier(
        nn.Sequential(conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), *blocks, *head(128)), images(96), CLASSES
    )


def squeezenet() -> Network:
    """Return a SqueezeNet (Iandola et al. 2016)."""

    def fire(inputs: int, squeeze: int, expand: int) -> nn.Sequential:
        squeezed = (nn.Conv2d(inputs, squeeze, 1), nn.ReLU(inplace=True))
        branches = ConcatenatedBranches(nn.Conv2d(squeeze, expand, 1), nn.Conv2d(squeeze, expand, 3, padding=1))
        return nn.Sequential(*squeezed, branches, nn.ReLU(inplace=True))

    stem = (nn.Conv2d(3, 64, 3, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, ceil_mode=True))
    fires = (fire(64, 16, 64), fire(128, 32, 128), nn.MaxPool2d(3, 2, ceil_mode=True), fire(256, 48, 192))
    last = (nn.Dropout(), nn.Conv2d(384, CLASSES, 1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return classifier(nn.Sequential(*stem, *fires, *last), images(95), CLASSES)


def inception() -> Network:
    """Return a GoogLeNet with branches of several kernel sizes (Szegedy et al. 2015)."""

    def block(inputs: int, widths: tuple[int, ...]) -> ConcatenatedBranches:
        width1, reduce3, three, reduce5, five, pooled = widths
        return ConcatenatedBranches(
            conv_norm(inputs, width1, 1),
            nn.Sequential(conv_norm(inputs, reduce3, 1), conv_norm(reduce3, three, 3)),
            nn.Sequential(conv_norm(inputs, reduce5, 1), conv_norm(reduce5, five, 5)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_norm(inputs, pooled, 1)),
        )

    stem = (
        conv_norm(3, 64, 7, 2),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        conv_norm(64, 192, 3),
        nn.MaxPool2d(3, 2, ceil_mode=True),
    )
    blocks = (block(192, (64, 96, 128, 16, 32, 32)), block(256, (128, 128, 192, 32, 96, 64)))
    return classifier(nn.Sequential(*stem, *blocks, *head(480)), images(96), CLASSES)


class Shuffled(nn.Module):
    """A block of ShuffleNetV2: a branch processes half of the channels, then all are shuffled (Ma et al. 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        depthwise = (nn.Conv2d(half, half, 3, 1, 1, groups=half, bias=False), nn.BatchNorm2d(half))
        self.branch = nn.Sequential(conv_norm(half, half, 1), *depthwise, conv_norm(half, half, 1))

    def forward(self, x: Tensor) -> Tensor:
        unchanged, transformed = x.chunk(2, 1)
        return torch.cat([unchanged, self.branch(transformed)], 1).unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)


def shufflenet() -> Network:
    """Return a ShuffleNetV2 with shuffled channels (Ma et al. 2018)."""
    stem = (conv_norm(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1), conv_norm(24, 116, 1))
    stages = (Shuffled(116), conv_norm(116, 232, 3, 2), Shuffled(232), conv_norm(232, 464, 3, 2), Shuffled(464))
    return classifier(nn.Sequential(*stem, *stages, conv_norm(464, 1024, 1), *head(1024)), images(96), CLASSES)


def dcgan() -> Network:
    """Return the generator and the discriminator of a DCGAN, trained together (Radford et al. 2016)."""

    def up(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
        return nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)

    first = (nn.ConvTranspose2d(100, 512, 4, bias=False), nn.BatchNorm2d(512), nn.ReLU(inplace=True))
    generator = nn.Sequential(
        *first, *up(512, 256), *up(256, 128), *up(128, 64), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()
    )
    down = [nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True)]
    for width in (64, 128, 256):
        down += [
            nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(0.2, inplace=True),
        ]
    discriminator = nn.Sequential(*down, nn.Conv2d(512, 1, 4), nn.Sigmoid(), nn.Flatten(0))
    adversarial = nn.Sequential(generator, discriminator)
    noise = torch.randn(4, 100, 1, 1)
    return Network(adversarial, lambda: nn.functional.binary_cross_entropy(adversarial(noise), torch.ones(4)), "adam")


def c3d() -> Network:
    """Return a network with convolutions over space and time (Tran et al. 2015)."""
    layers: list[nn.Module] = []
    for inputs, outputs, pool in ((3, 64, (1, 2, 2)), (64, 128, (2, 2, 2)), (128, 256, (2, 2, 2))):
        layers += [nn.Conv3d(inputs, outputs, 3, padding=1), nn.BatchNorm3d(outputs), nn.ReLU(), nn.MaxPool3d(pool)]
    module = nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(256, 400))
    return classifier(module, torch.randn(1, 3, 8, 32, 32), 400)


def vit() -> Network:
    """Return a vision transformer (Dosovitskiy et al. 2021)."""
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(num_hidden_layers=2, image_size=96, num_labels=CLASSES)
    labels = torch.randint(CLASSES, (2,))
    return transformers_network(ViTForImageClassification, config, pixel_values=images(96), labels=labels)


def swin() -> Network:
    """Return a Swin transformer, which attends within shifted windows (Liu et al. 2021)."""
    from transformers import SwinConfig, SwinForImageClassification

    config = SwinConfig(image_size=112, depths=[2, 2], num_heads=[3, 6], num_labels=CLASSES)
    return transformers_network(
        SwinForImageClassification, config, pixel_values=images(112), labels=torch.randint(CLASSES, (2,))
    )


def convnext() -> Network:
    """Return a ConvNeXt (Liu et al. 2022)."""
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(depths=[1, 1, 1, 1], num_labels=CLASSES)
    module = ConvNextForImageClassification(config)
    pixels, labels = images(96), torch.randint(CLASSES, (2,))
    return Network(module, lambda: module(pixel_values=pixels, labels=labels).loss)


def mobilevit() -> Network:
    """Return a MobileViT of convolutions and transformers (Mehta and Rastegari 2022)."""
    from transformers import MobileViTConfig, MobileViTForImageClassification

    config = MobileViTConfig(image_size=64, num_labels=CLASSES)
    return transformers_network(
        MobileViTForImageClassification, config, pixel_values=images(64), labels=torch.randint(CLASSES, (2,))
    )


def clip() -> Network:
    """Return CLIP, which compares pictures and texts (Radford et al. 2021)."""
    from transformers import CLIPConfig, CLIPModel

    text = {"vocab_size": 2001, "num_hidden_layers": 1, "eos_token_id": 2000, "max_position_embeddings": 32}
    picture = {"num_hidden_layers": 1, "image_size": 64, "patch_size": 16}
    ids = torch.randint(2000, (2, 32))
    batch = {"input_ids": ids, "pixel_values": images(64), "return_loss": True}
    return transformers_network(CLIPModel, CLIPConfig(text_config=text, vision_config=picture), **batch)


NETWORKS = {
    function.__name__: function
    for function in (
        *(
            alexnet,
            c3d,
            clip,
            convnext,
            dcgan,
            densenet,
            efficientnet,
            inception,
            mobilenet_v2,
            mobilenet_v3,
            mobilevit,
        ),
        *(resnet18, resnet50, resnext, shufflenet, squeezenet, swin, vgg16, vit),
    )
}
"""The functions that build the networks, by name."""
