"""Former name of the chapter `run`.

Editable installations from before the move name its entry point of pytest in their metadata.
"""
