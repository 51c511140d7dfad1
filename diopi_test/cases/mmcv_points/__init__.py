"""MMCV's operators on point sets: neighbors, sampling, gathering and grouping, interpolation, PAConv scores."""

from diopi_test.cases.mmcv_points import assign_score, grouping, neighbors, sampling

__all__ = ["assign_score", "grouping", "neighbors", "sampling"]
