"""Diffusion networks of `diffusers`, and the autoencoders that they use.

Each public function builds a `Network`: a module with random weights, and a function that returns its training loss.
"""

from __future__ import annotations

from typing import Any

import torch
from network import Network
from torch import nn


def denoiser(module: nn.Module, noisy: torch.Tensor, **context: Any) -> Network:
    """Return a network that predicts the noise in its input.

    Args:
        module: the denoising module.
        noisy: the input, images with noise.
        **context: the other arguments of the module, such as the time step.
    """
    if hasattr(module, "set_attn_processor") and (processor := use_plain_attention(module)):
        module.set_attn_processor(processor)

    def loss(noisy: torch.Tensor, noise: torch.Tensor, **context: Any) -> torch.Tensor:
        return nn.functional.mse_loss(module(noisy, **context).sample[:, : noise.shape[1]], noise)

    return Network(module, loss, batch={"noisy": noisy, "noise": torch.randn_like(noisy), **context})


def use_plain_attention(module: nn.Module) -> Any:
    """Return the processor of attention by products and softmax; None if the network does not support it."""
    from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0

    usual = all(isinstance(processor, AttnProcessor2_0) for processor in module.attn_processors.values())
    return AttnProcessor() if usual else None


def ddpm() -> Network:
    """Return a U-Net that removes noise from pictures (Ho et al. 2020)."""
    from diffusers import UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    module = UNet2DModel(32, block_out_channels=(128, 256), layers_per_block=1, **blocks)
    return denoiser(module, torch.randn(1, 3, 32, 32), timestep=torch.tensor([7]))


def stable_diffusion() -> Network:
    """Return the U-Net of Stable Diffusion, which a text conditions by cross-attention (Rombach et al. 2022)."""
    from diffusers import UNet2DConditionModel

    down, up = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
    sizes = {"block_out_channels": (320, 640), "layers_per_block": 1, "cross_attention_dim": 768}
    module = UNet2DConditionModel(16, down_block_types=down, up_block_types=up, **sizes)
    text = torch.randn(1, 16, 768)
    return denoiser(module, torch.randn(1, 4, 16, 16), timestep=torch.tensor([7]), encoder_hidden_states=text)


def autoencoder() -> Network:
    """Return the variational autoencoder of Stable Diffusion (Rombach et al. 2022)."""
    from diffusers import AutoencoderKL

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return denoiser(AutoencoderKL(block_out_channels=(128, 256), **blocks), torch.randn(1, 3, 32, 32))


def vq_autoencoder() -> Network:
    """Return an autoencoder whose latent vectors are entries of a codebook (van den Oord et al. 2017)."""
    from diffusers import VQModel

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    sizes = {"block_out_channels": (128, 256), "num_vq_embeddings": 512, "latent_channels": 3}
    return denoiser(VQModel(**sizes, **blocks), torch.randn(1, 3, 32, 32))


def dit() -> Network:
    """Return a diffusion transformer that a class conditions (Peebles and Xie 2023)."""
    from diffusers import DiTTransformer2DModel

    module = DiTTransformer2DModel(num_attention_heads=6, attention_head_dim=64, num_layers=1, sample_size=16)
    conditions = {"timestep": torch.tensor([7]), "class_labels": torch.tensor([3])}
    return denoiser(module, torch.randn(1, 4, 16, 16), **conditions)


def pixart() -> Network:
    """Return a diffusion transformer that a text conditions (Chen et al. 2023)."""
    from diffusers import PixArtTransformer2DModel

    sizes = {
        "num_attention_heads": 16,
        "attention_head_dim": 72,
        "num_layers": 1,
        "sample_size": 16,
        "caption_channels": 512,
    }
    module = PixArtTransformer2DModel(cross_attention_dim=1152, use_additional_conditions=False, **sizes)
    conditions = {"timestep": torch.tensor([7]), "encoder_hidden_states": torch.randn(1, 16, 512)}
    return denoiser(
        module, torch.randn(1, 4, 16, 16), added_cond_kwargs={"resolution": None, "aspect_ratio": None}, **conditions
    )


def sd3() -> Network:
    """Return the transformer of Stable Diffusion 3, which attends to picture and text together (Esser et al. 2024)."""
    from diffusers import SD3Transformer2DModel

    sizes = {
        "num_layers": 1,
        "num_attention_heads": 12,
        "attention_head_dim": 64,
        "sample_size": 16,
        "caption_projection_dim": 768,
    }
    module = SD3Transformer2DModel(joint_attention_dim=1024, pooled_projection_dim=768, pos_embed_max_size=16, **sizes)
    text = {"encoder_hidden_states": torch.randn(1, 16, 1024), "pooled_projections": torch.randn(1, 768)}
    return denoiser(module, torch.randn(1, 16, 16, 16), timestep=torch.tensor([7]), **text)


NETWORKS = {
    function.__name__: function for function in (autoencoder, ddpm, dit, pixart, sd3, stable_diffusion, vq_autoencoder)
}
"""The functions that build the networks, by name."""
