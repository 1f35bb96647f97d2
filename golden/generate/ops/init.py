"""init: known answers of Philox4x32-10, and the normal numbers that spec/random derives from its blocks.

Published vectors are typed in from the Random123 distribution. The normals are computed from an independent
Philox in Python integers (checked against those vectors) and Box-Muller in mpmath at 40 digits.
"""

import mpmath
import numpy as np

from ..golden_file import Golden, tool_versions

mpmath.mp.dps = 40
# Random123 1.14.0, tests/kat_vectors, lines "philox4x32 10": counter[4], key[2], expected[4].
KNOWN_ANSWERS = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""
PARAMETER_SITE = 1  # spec/random/philox.hpp, enum Site


def philox(counter, key):
    """Salmon et al., SC'11, figure 2 and section 3.3, over Python integers."""
    x0, x1, x2, x3 = counter
    for step in range(10):
        key0, key1 = ((key[0] + step * 0x9E3779B9) & 0xFFFFFFFF, (key[1] + step * 0xBB67AE85) & 0xFFFFFFFF)
        high0, low0 = divmod(0xD2511F53 * x0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * x2, 2**32)
        x0, x1, x2, x3 = high1 ^ x1 ^ key0, low1, high0 ^ x3 ^ key1, low0
    return [x0, x1, x2, x3]


def normal(seed, stream, index):
    """N(0, 1) of spec/random/philox.hpp: Box-Muller over the two 64-bit halves of a block."""
    block = philox([index % 2**32, index >> 32, stream, PARAMETER_SITE], [seed % 2**32, seed >> 32])
    u1, u2 = (((high << 32 | low) >> 11) + mpmath.mpf(0.5) for low, high in (block[:2], block[2:]))
    radius = mpmath.sqrt(-2 * mpmath.log(u1 / 2**53))
    return radius * mpmath.cos(2 * mpmath.pi * u2 / 2**53)


def cases():
    words = np.array([[int(word, 16) for word in line.split()] for line in KNOWN_ANSWERS.split("\n") if line])
    for row in words.tolist():
        if philox(row[:4], row[4:6]) != row[6:]:
            raise AssertionError("this file's philox disagrees with Random123")
    yield Golden(
        "init", "philox_known_answers", "published", "Random123 1.14.0, tests/kat_vectors, lines 'philox4x32 10'",
        tool_versions(), {"counter": words[:, :4], "key": words[:, 4:6], "expected": words[:, 6:]})

    keys = [(0, 0, 0), (1, 0, 5), (42, 3, 1000), (2**40 + 7, 2**31, 2**33 + 1), (123456789, 11, 99)]
    keys += [(7, 2, index) for index in range(20)]
    seeds, streams, indices = (np.array(column, dtype=np.int64) for column in zip(*keys))
    yield Golden(
        "init", "normal", "mpmath", "Box, Muller, 1958: sqrt(-2 log u1) cos(2 pi u2), u = (53-bit integer + 1/2) / 2^53",
        tool_versions("mpmath"),
        {"seed": seeds, "stream": streams, "index": indices,
         "normal": np.array([float(normal(*key)) for key in keys])},
        note="site 1 (parameter) of spec/random/philox.hpp")
