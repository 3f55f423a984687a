"""dpflow's learning engine beside PyTorch and Opacus, in one run.

usage: bench_engine.py ENGINE [--quick]

Ours before, between and after theirs, two networks, two lots, the same threads; of each the
best is taken, since whatever disturbs a measurement can only slow it down. The table has
examples a second and the ratios that are asked for.
"""

import json
import os
import subprocess
import sys

from torch_bench import NETWORKS, THREADS

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = ("plain", "dp")


def ours(engine, best, batches):
    for net in NETWORKS:
        for batch in batches:
            for mode in MODES:
                out = subprocess.run([engine, net, str(batch), str(THREADS), "0", mode,
                                      "2"], capture_output=True, text=True, check=True)
                rate = json.loads(out.stdout)["examples_per_s"]
                key = net, batch, mode
                best[key] = max(best.get(key, 0), rate)


def theirs(quick):
    words = [sys.executable, "-B", os.path.join(HERE, "torch_bench.py")]
    out = subprocess.run(words + (["--quick"] if quick else []), capture_output=True,
                         text=True, check=True).stdout
    sys.stderr.write(out)
    lines = [json.loads(line) for line in out.splitlines()]
    return {(line["summary"], line["batch"]): line for line in lines if "summary" in line}


def main():
    engine, quick = sys.argv[1], "--quick" in sys.argv
    batches, best = ((128,) if quick else (128, 512)), {}
    ours(engine, best, batches)
    ours(engine, best, batches)
    peers = theirs(quick)
    ours(engine, best, batches)
    ours(engine, best, batches)
    print(f"examples a second, {THREADS} threads; of others' work on the machine, the most "
          "that any of their measurements saw is given in cores")
    for (net, batch), peer in peers.items():
        if peer.get("late") or "plain" not in peer or "private" not in peer:
            print(f"{net:12} lot {batch:4}  their measurements were not done in time")
            continue
        plain, private = best[net, batch, "plain"], best[net, batch, "dp"]
        print(f"{net:12} lot {batch:4}  plain: dpflow {plain:6.0f}, PyTorch "
              f"{peer['plain']:6.0f} ({peer['plain_by']}): {plain / peer['plain']:.2f} x "
              f"(at least 1.0)")
        print(f"{'':12}           private: dpflow {private:6.0f} ({plain / private:.2f} x "
              f"the plain step's time), Opacus {peer['private']:6.0f} "
              f"({peer['private_by']}, {peer['plain'] / peer['private']:.2f} x PyTorch's "
              f"plain step): {private / peer['private']:.2f} x (at least 3); "
              f"{private / peer['plain']:.2f} x PyTorch's plain rate; others "
              f"{peer['most_others_cores']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
