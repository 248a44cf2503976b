"""The engine without a server."""

from tinyserve.engine import Engine


class LLM:
    def __init__(self, model):
        self.engine = Engine(model)

    def generate(self, prompts, params):
        """The texts, and how many tokens they have together. params is one for all, or a list."""
        if not isinstance(params, list):
            params = [params] * len(prompts)
        for i, (prompt, each) in enumerate(zip(prompts, params)):
            self.engine.add_request(str(i), prompt, each)
        texts, tokens = [""] * len(prompts), 0
        while self.engine.has_unfinished_requests():
            for output in self.engine.step():
                texts[int(output.request_id)] += output.delta
                tokens += 1
        return texts, tokens
