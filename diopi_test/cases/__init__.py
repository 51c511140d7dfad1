"""What is tried: the case model, domains and layouts, and the cases of every function by family.

Imports the standard (`diopi_proto`) and number formats, never a reference: what a case needs of another function's
results it names (`ResultOf`), and the oracle fills it in.
"""
