"""Continuous batching: every step gives every running sequence one token."""

from collections import deque
from dataclasses import dataclass, field

from tinyserve.model import Model
from tinyserve.tokenizer import Tokenizer


@dataclass
class Sequence:
    request_id: str
    prompt_ids: list
    params: object
    state: bytearray = None
    output_ids: list = field(default_factory=list)
    text: str = ""


@dataclass
class Output:
    request_id: str
    delta: str
    finished: bool
    num_prompt_tokens: int
    num_output_tokens: int


class Engine:
    def __init__(self, model, max_num_seqs=64):
        self.model = Model(model)
        self.tokenizer = Tokenizer()
        self.max_num_seqs = max_num_seqs
        self.waiting = deque()
        self.running = []

    def add_request(self, request_id, prompt, params):
        ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        self.waiting.append(Sequence(request_id, ids, params))

    def has_unfinished_requests(self):
        return bool(self.waiting or self.running)

    def step(self):
        while self.waiting and len(self.running) < self.max_num_seqs:
            sequence = self.waiting.popleft()
            sequence.state = self.model.start(sequence.prompt_ids)
            self.running.append(sequence)
        outputs = [self._advance(sequence) for sequence in self.running]
        self.running = [s for s in self.running if len(s.output_ids) < s.params.max_tokens]
        return outputs

    def _advance(self, sequence):
        draw = sequence.params.seed + len(sequence.output_ids)
        sequence.output_ids.append(self.model.step(sequence.state, draw))
        prompt = self.tokenizer.decode(sequence.prompt_ids)
        text = self.tokenizer.decode(sequence.prompt_ids + sequence.output_ids)[len(prompt) :]
        delta, sequence.text = text[len(sequence.text) :], text
        return Output(
            request_id=sequence.request_id,
            delta=delta,
            finished=len(sequence.output_ids) >= sequence.params.max_tokens,
            num_prompt_tokens=len(sequence.prompt_ids),
            num_output_tokens=len(sequence.output_ids),
        )
