"""One LATENT record (9,216 values, 92,160 bits) encoded and randomised by UER: dpflow
against a vectorised NumPy program of the same step, alternating within one run, one core.

    bench_local.py BUILD/bench/privacy
"""

import json
import os
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

ROUNDS = 7
RECORDS, VALUES, WHOLE, FRACTION = 32, 9216, 4, 5
ALPHA, EPSILON = 7, 0.5
BITS = VALUES * (1 + WHOLE + FRACTION)


def rates():
    """Pr[1 | 1] and Pr[1 | 0] at every place of a string."""
    zero = 1 / (1 + ALPHA * np.exp(EPSILON / BITS))
    one = np.where(np.arange(BITS) % 2 == 0, ALPHA / (1 + ALPHA), 1 / (1 + ALPHA**3))
    return one.astype(np.float32), np.float32(zero)


def encode(x):
    magnitude = np.minimum(np.abs(x) * 2**FRACTION, 2 ** (WHOLE + FRACTION) - 1)
    code = magnitude.astype(">u2") | (x < 0).astype(">u2") << (WHOLE + FRACTION)
    bits = np.unpackbits(code.view(np.uint8).reshape(len(x), VALUES, 2), axis=2)
    return bits[:, :, 16 - 1 - WHOLE - FRACTION:].reshape(len(x), BITS)


def randomise(bits, one, zero, generator):
    threshold = np.where(bits, one, zero)
    drawn = generator.random(bits.shape, dtype=np.float32)
    return np.packbits(drawn < threshold, axis=1, bitorder="little")


def main():
    generator = np.random.Generator(np.random.SFC64())
    x = generator.standard_normal((RECORDS, VALUES), dtype=np.float32) * 2
    one, zero = rates()
    theirs, ours = 1e9, {"us": 1e9}
    for _ in range(ROUNDS):
        for _ in range(3):
            began = time.perf_counter()
            randomise(encode(x), one, zero, generator)
            theirs = min(theirs, (time.perf_counter() - began) * 1e6 / RECORDS)
        line = subprocess.run([sys.argv[1], "latent"], check=True, capture_output=True, text=True)
        now = json.loads(line.stdout)
        ours = now if now["us"] < ours["us"] else ours
    print(f"a LATENT record of {BITS:,} bits: ours {ours['us']:.1f} us (encode "
          f"{ours['encode_us']:.1f}, randomise {ours['randomise_us']:.1f}; the generator's own "
          f"time is {100 * ours['generator_share']:.0f} % of it), NumPy {theirs:.0f} us: "
          f"{theirs / ours['us']:.0f} x (at least 20; at most 100 us)")


main()
