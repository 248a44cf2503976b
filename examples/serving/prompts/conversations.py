"""Writes conversations of random words, in the form of ShareGPT's."""

import json
import random
import sys

random.seed(1)


def said(words):
    return " ".join(f"word{random.randrange(10**6)}" for _ in range(words))


turns = [[{"from": "human", "value": said(16)}, {"from": "gpt", "value": said(24)}] for _ in range(100)]
json.dump([{"id": str(i), "conversations": t} for i, t in enumerate(turns)], sys.stdout)
