"""Traces of the calls that real networks make in training steps, and the tracer that writes them.

The package imports only the standard (`diopi_proto`). Only `trace` needs PyTorch; reading traces does not.
`diopi_test.cases.selection.traced` derives cases from the traces.
"""
