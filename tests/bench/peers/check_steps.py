"""Does dpflow take the same training steps as PyTorch?

usage: check_steps.py DPFLOW FOLDER

Ten steps from given weights over given batches, by torch_steps.py and by `dpflow train`:
the loss of every step must agree to 1e-4, and the final weights are compared as well.
"""

import json
import os
import subprocess
import sys

import numpy as np
from safetensors.numpy import load_file

from nets import TEXTS

LIMIT = 1e-4
NETS = {"adlm-mnist": ["cross-entropy"], "unet3d-small": ["voxel"]}


def ours(dpflow, net, folder, setting, backend):
    """The losses that `dpflow train` says, and its final weights."""
    data = os.path.join(folder, "data.npz")
    np.savez(data, x=np.load(os.path.join(folder, "x.npy")),
             y=np.load(os.path.join(folder, "y.npy")))
    arch = net
    if net in TEXTS:
        arch = os.path.join(folder, "network")
        with open(arch, "w") as f:
            f.write(TEXTS[net])
    curve, final = os.path.join(folder, "curve.csv"), os.path.join(folder, "ours")
    loaded = subprocess.Popen([dpflow, "load", data], stdout=subprocess.PIPE)
    subprocess.run(
        [dpflow, "train", "--quiet", "--arch", arch, "--loss", NETS[net][0], "--epochs",
         "1", "--lot", str(setting["batch"]), "--sampling", "sequence", "--optimiser",
         "momentum", "--momentum", str(setting["momentum"]), "--rate",
         str(setting["rate"]), "--weights", os.path.join(folder, "init.safetensors"),
         "--curve", curve, "--export", final, "--backend", backend, "-o", "/dev/null"],
        stdin=loaded.stdout, check=True)
    if loaded.wait() != 0:
        raise RuntimeError("load failed")
    lines = open(curve).read().split()[1:]
    return [float(line.split(",")[2]) for line in lines], load_file(final)


def main():
    dpflow, folder = sys.argv[1:]
    failed = 0
    for net in NETS:
        here = os.path.join(folder, net)
        subprocess.run([sys.executable, "-B", os.path.join(os.path.dirname(
            os.path.abspath(__file__)), "torch_steps.py"), net, here], check=True)
        said = json.load(open(os.path.join(here, "losses.json")))
        theirs = load_file(os.path.join(here, "final.safetensors"))
        for backend in ("cpu", "ref"):
            losses, weights = ours(dpflow, net, here, said, backend)
            off = max(abs(a - b) / abs(b) for a, b in zip(losses, said["losses"]))
            far = max(np.abs(weights[n] - theirs[n]).max() for n in theirs)
            good = len(losses) == said["steps"] and off <= LIMIT
            failed += not good
            print(f"{'ok' if good else 'not ok'} steps: {net}, {backend}: losses of "
                  f"{len(losses)} steps {said['losses'][0]:.5f} to "
                  f"{said['losses'][-1]:.5f}, off by {off:.1e} at most (limit {LIMIT}, "
                  f"rounding {said['rounding_level']:.1e}), weights by {far:.1e}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
