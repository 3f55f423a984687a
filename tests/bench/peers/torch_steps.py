"""Ten training steps in PyTorch, for dpflow to repeat and arrive at the same losses.

usage: torch_steps.py NET FOLDER

Writes init.safetensors and final.safetensors (the parameters before and after), x.npy
(float32 in [0,1]) and y.npy (int64: a label an example, or one a voxel), and losses.json:
the mean loss of each step's batch before its update. Step i reads examples i*batch to
(i+1)*batch.

How close must another program come? The same steps in double precision, from the same
numbers, give the exact course; and single precision is run a few times more from
parameters that are off by about a unit in their last place, as another order of summation
would leave them. The largest relative distance of any of them from the exact course is
the rounding level. It is not that of a smooth function: where two values of a max-pool or
of min-max are nearly equal, or a ReLU is nearly at 0, rounding decides who gets the
gradient, and the losses part by 1e-5 to 1e-3. SEED is one without such an accident.
"""

import copy
import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from nets import NETS

STEPS, MOMENTUM, SEED, DISTURBED = 10, 0.9, 1, 5
# No plain-cifar: two programs do not drop the same values.
SETTINGS = {"abadi-mnist": {"batch": 32, "rate": 0.05},
            "adlm-mnist": {"batch": 32, "rate": 0.02},
            "unet3d-small": {"batch": 4, "rate": 0.05}}


def initialise(net):
    """He's weights: with PyTorch's, which are smaller, ten steps hardly move a loss."""
    for parameter in net.parameters():
        if parameter.dim() > 1:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")


def smooth_noise(*shape):
    """Uniform noise on a grid four times as coarse, interpolated: shapes, not pixels."""
    coarse = torch.rand(*shape[:2], *(-(-size // 4) for size in shape[2:]))
    mode = "bilinear" if len(shape) == 4 else "trilinear"
    return F.interpolate(coarse, size=shape[2:], mode=mode)


def pictures(net, count):
    """Bright spots on black, the same for a class, under noise: each example is new, yet
    ten batches are enough to learn from."""
    y = torch.randint(net.classes, (count,))
    patterns = (5 * smooth_noise(net.classes, *net.shape) - 3).clamp(0, 1)
    x = patterns[y] + 0.1 * torch.randn(count, *net.shape)
    return x.clamp(0, 1), y


def volumes(net, count):
    """A label a voxel from a smooth field, seen as a level of brightness under noise."""
    field = smooth_noise(count, *net.shape)[:, 0]
    cuts = torch.quantile(field.flatten(), torch.arange(1, net.classes) / net.classes)
    y = torch.bucketize(field, cuts)
    x = (y + 0.5) / net.classes + 0.1 * torch.randn(field.shape)
    return x.clamp(0, 1).unsqueeze(1), y


def train(net, x, y, batch, rate):
    """The losses of the steps; changes net."""
    optimiser = torch.optim.SGD(net.parameters(), lr=rate, momentum=MOMENTUM)
    losses = []
    for xs, ys in zip(x.split(batch), y.split(batch)):
        optimiser.zero_grad()
        loss = F.cross_entropy(net(xs), ys)
        losses.append(loss.item())
        loss.backward()
        optimiser.step()
    return losses


def disturb(net):
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1 + 2**-24 * torch.randn_like(parameter))
    return net


def distance(losses, exact):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, exact))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in SETTINGS:
        print(f"usage: torch_steps.py {'|'.join(SETTINGS)} FOLDER", file=sys.stderr)
        return 2
    name, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    # One thread, so that sums are taken in the same order on every machine's core count.
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    net = NETS[name]()
    initialise(net)
    setting = SETTINGS[name]
    make = volumes if len(net.shape) == 4 else pictures
    x, y = make(net, STEPS * setting["batch"])
    np.save(os.path.join(folder, "x.npy"), x.numpy())
    np.save(os.path.join(folder, "y.npy"), y.numpy())
    save_file(net.state_dict(), os.path.join(folder, "init.safetensors"))

    exact = copy.deepcopy(net).double()
    others = [disturb(copy.deepcopy(net)) for _ in range(DISTURBED)]
    single = train(net, x, y, **setting)
    save_file(net.state_dict(), os.path.join(folder, "final.safetensors"))
    double = train(exact, x.double(), y, **setting)
    disturbed = [distance(train(other, x, y, **setting), double) for other in others]
    weights = max((p - q).abs().max().item()
                  for p, q in zip(net.parameters(), exact.parameters()))
    said = {"net": name, **setting, "momentum": MOMENTUM, "steps": STEPS,
            "torch": torch.__version__, "losses": single, "losses_float64": double,
            "distance": distance(single, double), "distances_disturbed": disturbed,
            "rounding_level": max(distance(single, double), *disturbed),
            "largest_distance_of_final_parameters": weights}
    with open(os.path.join(folder, "losses.json"), "w") as f:
        json.dump(said, f, indent=1)
        f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
