"""Recommendation networks: embedding tables of categories, and combinations of their rows. The tables are small.

Each public function builds a `Network`: a module with random weights, and a function that returns its training loss.
"""

from __future__ import annotations

import torch
from network import Network
from torch import Tensor, nn

from diopi_engine.conformance.models import zoo
from diopi_engine.conformance.models.zoo import perceptron

BATCH, ROWS, FIELDS = 64, 4001, 8
"""The size of a batch, the number of categories in each field (rows of its table), and the number of fields."""


class Tables(zoo.EmbeddingTables):
    """Embedding tables, one per field."""

    def __init__(self, width: int, fields: int = FIELDS) -> None:
        super().__init__(ROWS, width, fields)


def click_predictor(module: nn.Module, *batch: Tensor, optimizer: str = "adam") -> Network:
    """Return a network that predicts whether a user clicks.

    Args:
        module: returns a logit for each user.
        *batch: the arguments of the module.
        optimizer: the name of the optimizer.
    """
    clicked = torch.rand(BATCH).round()
    return Network(
        module, lambda: nn.functional.binary_cross_entropy_with_logits(module(*batch).flatten(), clicked), optimizer
    )


def categories(fields: int = FIELDS) -> Tensor:
    """Return random categories, one per field, for a batch."""
    return torch.randint(ROWS, (BATCH, fields))


def dlrm() -> Network:
    """Return a recommender with products of embeddings (Naumov et al. 2019)."""
    return click_predictor(
        zoo.Dlrm(ROWS, FIELDS, 64, (512, 256)), torch.randn(BATCH, 13), categories(), optimizer="sgd"
    )


class DeepFm(nn.Module):
    """A factorization machine and a perceptron in parallel (Guo et al. 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.tables, self.deep = Tables(1), Tables(16), perceptron(16 * FIELDS, 400, 400, 1)

    def forward(self, chosen: Tensor) -> Tensor:
        rows = self.tables(chosen)
        pairs = (rows.sum(1) ** 2 - (rows**2).sum(1)).sum(1, keepdim=True) / 2
        return self.linear(chosen).sum(1) + pairs + self.deep(rows.flatten(1))


def deepfm() -> Network:
    """Return a recommender with a factorization machine and a perceptron (Guo et al. 2017)."""
    return click_predictor(DeepFm(), categories())


class WideAndDeep(nn.Module):
    """A linear model and a perceptron in parallel (Cheng et al. 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.tables, self.deep = Tables(1), Tables(32), perceptron(32 * FIELDS + 13, 1024, 512, 256, 1)

    def forward(self, numbers: Tensor, chosen: Tensor) -> Tensor:
        return self.wide(chosen).sum(1) + self.deep(torch.cat([numbers, self.tables(chosen).flatten(1)], 1))


def wide_and_deep() -> Network:
    """Return a recommender with a linear model and a perceptron (Cheng et al. 2016)."""
    return click_predictor(WideAndDeep(), torch.randn(BATCH, 13), categories(), optimizer="fused")


class CrossNetwork(nn.Module):
    """Explicit products of features (Wang et al. 2021)."""

    def __init__(self) -> None:
        super().__init__()
        width = 16 * FIELDS
        self.tables, self.crosses = Tables(16), nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.deep, self.head = perceptron(width, 768, 768), nn.Linear(width + 768, 1)

    def forward(self, chosen: Tensor) -> Tensor:
        x = first = self.tables(chosen).flatten(1)
        for cross in self.crosses:
            x = first * cross(x) + x
        return self.head(torch.cat([x, self.deep(first).relu()], 1))


def dcn() -> Network:
    """Return a recommender with a cross network (Wang et al. 2021)."""
    return click_predictor(CrossNetwork(), categories(), optimizer="foreach")


class TwoTowers(nn.Module):
    """Separate embeddings of users and items, compared by cosine similarity."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = Tables(32, 4), Tables(32, 4)
        self.user_tower, self.item_tower = perceptron(128, 256, 64), perceptron(128, 256, 64)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        user_vectors = nn.functional.normalize(self.user_tower(self.users(users).flatten(1)), dim=-1)
        item_vectors = nn.functional.normalize(self.item_tower(self.items(items).flatten(1)), dim=-1)
        return user_vectors @ item_vectors.mT / 0.05


def two_towers() -> Network:
    """Return a network that embeds users and items separately; the other items of the batch are negative examples."""
    module, users, items = TwoTowers(), categories(4), categories(4)
    return Network(module, lambda: nn.functional.cross_entropy(module(users, items), torch.arange(BATCH)), "adam")


class Interest(nn.Module):
    """Earlier clicks, weighted by attention to the candidate (Zhou et al. 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.items, self.weight, self.head = (
            nn.Embedding(ROWS, 64, padding_idx=0),
            perceptron(256, 80, 40, 1),
            perceptron(128, 200, 80, 1),
        )

    def forward(self, history: Tensor, candidate: Tensor) -> Tensor:
        history_vectors, candidate_vector = self.items(history), self.items(candidate)
        candidate_vectors = candidate_vector.unsqueeze(1).expand_as(history_vectors)
        weights = self.weight(
            torch.cat(
                [
                    history_vectors,
                    candidate_vectors,
                    history_vectors - candidate_vectors,
                    history_vectors * candidate_vectors,
                ],
                -1,
            )
        ).squeeze(-1)
        shares = weights.masked_fill(history == 0, -1e9).softmax(-1)
        return self.head(torch.cat([(shares.unsqueeze(1) @ history_vectors).squeeze(1), candidate_vector], -1))


def din() -> Network:
    """Return a recommender that attends to the items that a user chose before (Zhou et al. 2018)."""
    history = torch.randint(ROWS, (BATCH, 20))
    history[:, 15:] = 0
    return click_predictor(Interest(), history, torch.randint(1, ROWS, (BATCH,)))


class NeuralFactors(nn.Module):
    """Matrix factorization and a perceptron in parallel (He et al. 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.tables, self.deep, self.head = (
            nn.ModuleList(nn.Embedding(ROWS, 64) for _ in range(4)),
            perceptron(128, 256, 128, 64),
            nn.Linear(128, 1),
        )

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        factors = self.tables[0](users) * self.tables[1](items)
        return self.head(
            torch.cat([factors, self.deep(torch.cat([self.tables[2](users), self.tables[3](items)], 1))], 1)
        )


def ncf() -> Network:
    """Return a recommender that combines matrix factorization and a perceptron (He et al. 2017)."""
    return click_predictor(NeuralFactors(), *torch.randint(ROWS, (2, BATCH)))


NETWORKS = {function.__name__: function for function in (dcn, deepfm, din, dlrm, ncf, two_towers, wide_and_deep)}
"""The functions that build the networks, by name."""
