"""Cases of kernels for serving language models: token caches, decoding, prefill, penalties, the fused all-reduce.

Importing the package registers the cases of all its modules. `diopi_proto/functions/llm.py` defines the functions.
"""

from diopi_test.cases.llm import blocks, copying, penalties, products, prompts, tokens

__all__ = ["blocks", "copying", "penalties", "products", "prompts", "tokens"]
