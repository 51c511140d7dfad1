"""The standard: prototypes of every operator and runtime function of the interface."""
