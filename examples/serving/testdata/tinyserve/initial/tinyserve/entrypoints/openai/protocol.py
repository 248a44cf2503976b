from dataclasses import dataclass, field
from typing import Optional


@dataclass
class Usage:
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


@dataclass
class Choice:
    index: int
    text: str
    finish_reason: Optional[str] = None


@dataclass
class Completion:
    id: str
    created: int
    model: str
    choices: list = field(default_factory=list)
    usage: Optional[Usage] = None
    object: str = "text_completion"
