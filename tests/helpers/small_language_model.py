"""A small language model on any device of PyTorch: a few steps of training, and the generation of a few tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, CONTEXT, BATCH = 29, 16, 2, 8, 3
"""The number of tokens, the size of their vectors, the attention heads, and the length and number of sequences."""


class Attention(nn.Module):
    """Causal attention, computed with products and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        parts = self.projection(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        scores = query @ key.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), -1)
        output: Tensor = self.output((weights @ value).transpose(1, 2).reshape(batch, length, WIDTH))
        return output


class Block(nn.Module):
    """A layer of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention = Attention()
        self.inner = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        attended: Tensor = x + self.attention(self.first_norm(x))
        result: Tensor = attended + self.inner(self.second_norm(attended))
        return result


class LanguageModel(nn.Module):
    """Two layers between an embedding and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        logits: Tensor = self.head(self.blocks(self.embedding(tokens) + self.positions(places)))
        return logits


def train(model: nn.Module, steps: int = 2) -> float:
    """Train the model and return the last loss."""
    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loss = torch.zeros(())
    for step in range(steps):
        tokens = (torch.arange(BATCH * (CONTEXT + 1)) ** 2 + step).remainder(VOCABULARY).view(BATCH, -1).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=step % 2 == 1):
            logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return float(loss.item())


@torch.no_grad()
def generate(model: nn.Module, tokens: int = 4) -> Tensor:
    """Return a generated sequence that begins with one token."""
    model.eval()
    sequence = torch.zeros((1, 1), dtype=torch.int64, device=next(model.parameters()).device)
    for _ in range(tokens):
        logits = model(sequence)[:, -1]
        best = logits.topk(3, -1)
        choice = best.indices.gather(1, best.values.argmax(-1, keepdim=True))
        sequence = torch.cat([sequence, choice], 1)
    return sequence


def train_and_generate(device: str = "cpu") -> Tensor:
    """Train the model, and return tokens that it generates."""
    torch.manual_seed(1)
    model = LanguageModel().to(device)
    train(model)
    return generate(model)


if __name__ == "__main__":
    print(train_and_generate().tolist())
