"""Numbers."""

from statistics import fmean as mean

float64 = float

__all__ = ["float64", "mean"]


def __getattr__(name):
    if name == "float_":
        raise AttributeError("`tinynum.float_` was removed in tinynum 2.0. Use `tinynum.float64` instead.")
    raise AttributeError(f"module 'tinynum' has no attribute '{name}'")
