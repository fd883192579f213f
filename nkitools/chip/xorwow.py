"""XORWOW, the generator of random numbers in the engines: Marsaglia's "Xorshift RNGs" (2003), section 3.1.

A state is six words: x, y, z, w, v and the counter d. Every lane has one or more of them.
"""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array

WORDS = 6
_STEP = 362437  # what is added to d each time


def seeded(seed: int, lanes: int, states: int) -> Array:
    """Return the states (lanes, states, 6) that a number stands for, spread over all words by NumPy's SeedSequence."""
    words = np.random.SeedSequence(seed).generate_state(lanes * states * WORDS, np.uint32)
    return words.reshape(lanes, states, WORDS)


def draw(state: Array, count: int) -> Array:
    """Return the next ``count`` numbers (uint32) of each lane of ``state`` (lanes, states, 6), which moves on.

    The states of a lane take turns. All of them are stepped together: of the last turn some numbers may be left over.
    """
    lanes, states, _ = state.shape
    steps = -(-count // states)
    history = np.empty((steps + 5, lanes, states), np.uint32)
    history[:5] = state[..., :5].transpose(2, 0, 1)
    for first in range(0, steps, 5):
        # What a step takes from five steps ago is known for five steps at once.
        old = history[first : first + 5]
        mixed = old ^ (old >> np.uint32(2))
        mixed ^= mixed << np.uint32(1)
        for step in range(first, min(first + 5, steps)):
            last = history[step + 4]
            np.left_shift(last, np.uint32(4), out=history[step + 5])
            history[step + 5] ^= last
            history[step + 5] ^= mixed[step - first]
    added = np.arange(1, steps + 1, dtype=np.uint32) * np.uint32(_STEP)
    numbers = history[5:] + added[:, None, None] + state[..., 5]
    state[..., :5] = history[steps:].transpose(1, 2, 0)
    state[..., 5] += np.uint32(steps * _STEP % 2**32)
    return numbers.transpose(1, 0, 2).reshape(lanes, steps * states)[:, :count]
