"""Numbers. float_ is the old name of float64."""

from statistics import fmean as mean

float64 = float_ = float

__all__ = ["float64", "float_", "mean"]
