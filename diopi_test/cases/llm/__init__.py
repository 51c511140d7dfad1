"""Kernels of language model serving: token caches, decoding, prefill, penalties, the fused all-reduce."""

from diopi_test.cases.llm import blocks, copying, penalties, products, prompts, tokens

__all__ = ["blocks", "copying", "penalties", "products", "prompts", "tokens"]
