"""Training a 3D U-Net: dpflow's engine beside PyTorch, in one run.

usage: bench_volumes.py ENGINE

The U-Net of width 8 with four poolings on volumes of 48x64x48, two a step, plain SGD with
momentum on cross-entropy. Sides alternate; of each the best is taken, and for PyTorch the
better of its two memory formats, with a malloc that keeps what it has (torch_bench.py).
"""

import json
import subprocess
import sys
import time

from torch_bench import THREADS, spawn

NET, LOT, ROUNDS = "unet:8=1x48x64x48:3", 2, 3


def ours(engine):
    out = subprocess.run([engine, NET, str(LOT), str(THREADS), "0", "plain", "3"],
                         capture_output=True, text=True, check=True)
    return LOT * 1000 / json.loads(out.stdout)["step_ms"]


def theirs(form):
    line = spawn({"net": NET, "batch": LOT, "mode": "plain", "format": form,
                  "malloc": "keep"}, 3.0, time.monotonic() + 60)
    if "error" in line:
        print(f"  PyTorch, {form}: {line['error']}")
    return line.get("examples_per_second", 0)


def main():
    engine, best = sys.argv[1], {"ours": 0, "contiguous": 0, "channels_last": 0}
    for _ in range(ROUNDS):
        best["ours"] = max(best["ours"], ours(engine))
        for form in ("contiguous", "channels_last"):
            best[form] = max(best[form], theirs(form))
    peer = max(best["contiguous"], best["channels_last"])
    if not peer:
        print(f"{NET}: PyTorch could not be measured")
        return 1
    print(f"{NET} lot {LOT}, {THREADS} threads, volumes a second: dpflow {best['ours']:.2f}, "
          f"PyTorch {peer:.2f}: {best['ours'] / peer:.2f} x (at least 1.2)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
