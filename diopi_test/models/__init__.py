"""Which calls real networks make: files of calls traced from training steps, and the tracer that writes them.

Imports the standard alone (`diopi_proto`). Only `trace` needs PyTorch; who reads the files does not. Cases are made of
them in `diopi_test.cases.models`.
"""
