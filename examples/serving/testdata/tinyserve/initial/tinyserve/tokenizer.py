"""Words to numbers, and numbers to syllables. The two are not inverse, and nothing here needs them to be."""

import zlib

from tinyserve import _kernels

BYTES = 256  # the first tokens are single bytes, so that every text can be said


class Tokenizer:
    def __init__(self):
        consonants, vowels = "bcdfghjklmnpqrstvwxz", "aeiou"
        syllables = [c + v for c in consonants for v in vowels]
        syllables += ["\u2581" + s for s in syllables]  # as the beginning of a word
        syllables += [s + c for s in syllables for c in consonants]
        self.pieces = [f"<0x{i:02X}>" for i in range(BYTES)] + syllables[: _kernels.VOCAB - BYTES]

    def encode(self, text):
        """One token for each word."""
        syllables = _kernels.VOCAB - BYTES
        return [BYTES + zlib.crc32(word.encode()) % syllables for word in text.split()]

    def convert_ids_to_tokens(self, ids):
        return [self.pieces[i] for i in ids]

    def convert_tokens_to_string(self, tokens):
        text, raw = [], bytearray()
        for token in tokens:
            if token.startswith("<0x"):
                raw.append(int(token[3:5], 16))
                continue
            if raw:
                text.append(raw.decode("utf-8", "replace"))
                raw.clear()
            text.append(token.replace("\u2581", " "))
        if raw:
            text.append(raw.decode("utf-8", "replace"))
        return "".join(text)

    def decode(self, ids):
        return self.convert_tokens_to_string(self.convert_ids_to_tokens(ids))
