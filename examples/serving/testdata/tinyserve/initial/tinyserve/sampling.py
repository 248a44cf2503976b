from dataclasses import dataclass


@dataclass
class SamplingParams:
    max_tokens: int = 16
    seed: int = 0
