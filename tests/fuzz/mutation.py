"""Inputs from seeds by random changes of bytes, the same for the same seed: where no coverage-guided fuzzer is."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

_NUMBERS = [0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1]
_TOGETHER = 4  # at most so many changes of one seed


def mutations(seeds: Sequence[bytes], words: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """The seeds themselves, then ever new inputs."""
    chance = random.Random(seed)  # noqa: S311 - for tests
    yield from seeds
    while True:
        content = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, _TOGETHER)):
            _change(content, seeds, words, chance)
        yield bytes(content)


def _change(content: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> None:
    place = chance.randrange(len(content) + 1)
    end = min(len(content), place + chance.choice([1, 2, 4, 8, 16, 64]))
    match chance.randrange(8):
        case 0 if place < len(content):
            content[place] ^= 1 << chance.randrange(8)
        case 1 if place < len(content):
            content[place] = chance.randrange(256)
        case 2:
            del content[place:end]
        case 3:
            content[place:place] = content[place:end]
        case 4:
            other = chance.choice(seeds)
            start = chance.randrange(len(other) + 1)
            content[place:end] = other[start : start + chance.choice([1, 4, 16, 256])]
        case 5:
            width = chance.choice([1, 2, 4, 8])
            number = chance.choice(_NUMBERS) % 2 ** (8 * width)
            content[place : place + width] = number.to_bytes(width, chance.choice(["little", "big"]))
        case 6 if words:
            content[place : place if chance.random() < 0.5 else end] = chance.choice(words)
        case 7:
            del content[place:]
