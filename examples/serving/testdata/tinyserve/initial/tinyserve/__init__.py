"""A stand-in for an inference engine."""

from tinyserve.llm import LLM
from tinyserve.sampling import SamplingParams

__version__ = "0.1.0"

__all__ = ["LLM", "SamplingParams"]
