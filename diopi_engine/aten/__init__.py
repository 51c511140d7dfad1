"""Programs of PyTorch as functions of JAX: an interpreter of the graph that `torch.export` makes of a module.

The graph is decomposed to Core ATen, PyTorch's set of operators from which all others can be composed. `operators` and
the modules beside it have them as functions of `jax.numpy`; `program` walks the graph. Sizes that depend on the batch
are symbolic dimensions of JAX, which compute as integers do.
"""
