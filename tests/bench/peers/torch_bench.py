"""How fast PyTorch trains, and Opacus trains privately: one JSON line a measurement.

usage: torch_bench.py [--quick] [--malloc keep|default]

A measurement is a process of its own (its peak memory is then its own) that repeats one
training step on one batch in memory: zero the gradients, forward, cross-entropy,
backward, SGD with momentum; dropout is on. Opacus clips and adds noise besides. Sampling
the batch and reading data cost nothing here. `examples_per_second` is the best of the
repetitions, `median` the middle one, `repetitions` how many there were.

PyTorch takes every tensor from malloc, and glibc fetches large ones from the system and
gives them back each time, so a step spends its time in page faults: up to 2.6 times as
long. The peers are shown at their best, so glibc is told to keep what it has (--malloc
keep); --malloc default measures them as installed.

Others use the machine as well. `others_cores` says how many cores they took meanwhile
(all processor time that was not ours): a figure with more than a tenth or so is too low,
sometimes by a factor of three, since threads that wait for each other wait for the one
that was sent away. What time is left goes into repeating the most disturbed measurements;
the better one counts. What could not be measured in time says so ("late").

The last lines, one a net and batch, compare: plain PyTorch in its faster memory format,
each mode of Opacus, the fastest of them; `late` counts what is missing. A run ends within
five minutes, with --quick (one batch size, fewer ways) within ninety seconds; a disturbed
one is then incomplete. Opacus runs in the default memory format: channels_last made no
difference to it above the noise.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

# PyTorch is imported inside the functions that a measurement calls: a child's peak memory
# counts from what its parent had when it was started, so the parent must stay small.

NETWORKS = ("adlm-mnist", "plain-cifar")
THREADS = 2
# Read by glibc only, when a process starts; any other C library passes over it.
KEEP = "glibc.malloc.mmap_threshold=8589934592:glibc.malloc.trim_threshold=34359738368"
# Seconds: `limit` is for all, `timed` for one measurement without its start. Starting
# Python, PyTorch and Opacus takes three to six, so --quick keeps to what has won before
# or come close, and the slowest way is the last, the one to be late.
FULL = {"limit": 290, "timed": 2.0, "batches": (128, 512),
        "formats": ("contiguous", "channels_last"),
        "modes": ("ghost", "ew", "hooks", "functorch")}
QUICK = {"limit": 85, "timed": 1.5, "batches": (128,), "formats": ("contiguous",),
         "modes": ("ghost", "ew", "hooks")}


# ----------------------------------------------------------------- inside a measurement

def machine_seconds():
    """Processor time that everybody has used so far; None where /proc does not say."""
    try:
        with open("/proc/stat") as f:
            fields = [int(word) for word in f.readline().split()[1:9]]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = fields
    busy = user + nice + system + irq + softirq + steal
    return busy / os.sysconf("SC_CLK_TCK")


def own_seconds():
    used = os.times()
    return used.user + used.system


def support(net, mode):
    """How Opacus handles each kind of layer that has parameters, in this mode."""
    import torch.nn.functional as F
    from opacus.grad_sample import GradSampleModule as Hooks
    from opacus.grad_sample import GradSampleModuleFastGradientClipping as Ghost
    from torch.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight

    said = {}
    for layer in net.children():
        kind = type(layer)
        hook = "own sampler" if kind in Hooks.GRAD_SAMPLERS else "no sampler: functorch"
        if mode == "hooks":
            said[kind.__name__] = hook
        elif mode == "functorch":
            said[kind.__name__] = "functorch"
        elif mode == "ew":
            function = {"Conv2d": F.conv2d, "Linear": F.linear}.get(kind.__name__)
            known = function in ExpandedWeight.handled_functions
            said[kind.__name__] = "expanded weights" if known else "not supported"
        else:
            said[kind.__name__] = ("ghost norm" if kind in Ghost.NORM_SAMPLERS else
                                   f"no ghost norm: gradients are built, {hook}")
    return said


def stepper(net, mode, x, y):
    """A function that makes one training step."""
    import torch

    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    if mode != "plain":
        import opacus

        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y),
                                             batch_size=len(x))
        # No Poisson sampling: it would change the size of the batch from step to step.
        net, optimiser, *rest = opacus.PrivacyEngine().make_private(
            module=net, optimizer=optimiser, criterion=loss_of, data_loader=loader,
            noise_multiplier=1.0, max_grad_norm=1.0, poisson_sampling=False,
            grad_sample_mode=mode)
        if mode == "ghost":
            loss_of = rest[0]
    net.train()

    def step():
        optimiser.zero_grad()
        loss_of(net(x), y).backward()
        optimiser.step()

    return step


def repeat(step, timed):
    """Seconds a step of each repetition, after a warm-up that does not count."""
    step()
    start = time.perf_counter()
    step()
    once = time.perf_counter() - start
    # A repetition of less than a quarter of a second says little about the machine.
    steps = max(1, round(0.25 / once))
    times = [once] if steps == 1 else []
    begun = start
    while len(times) < 3 or time.perf_counter() - begun < timed:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        times.append((time.perf_counter() - start) / steps)
    return times


def measure(what, timed):
    """One measurement, in this process."""
    import warnings

    import torch

    from nets import NETS

    warnings.filterwarnings("ignore")
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    net, mode, batch = NETS[what["net"]](), what["mode"], what["batch"]
    said = dict(what, torch=torch.__version__)
    if mode != "plain":
        import opacus

        said["opacus"] = opacus.__version__
        said["layers"] = support(net, mode)
    volumes = len(net.shape) == 4
    x = torch.rand(batch, *net.shape)
    y = torch.randint(net.classes, (batch, *(net.shape[1:] if volumes else ())))
    if what["format"] == "channels_last":
        last = torch.channels_last_3d if volumes else torch.channels_last
        net, x = net.to(memory_format=last), x.contiguous(memory_format=last)
    try:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        step = stepper(net, mode, x, y)
        wall, all_used, own = time.perf_counter(), machine_seconds(), own_seconds()
        times = repeat(step, timed)
        wall = time.perf_counter() - wall
        others = None
        if all_used is not None:
            others = machine_seconds() - all_used - (own_seconds() - own)
            others = round(max(0.0, others / wall), 2)
    except (NotImplementedError, RuntimeError, ValueError) as e:
        return dict(said, error=f"{type(e).__name__}: {e}"[:300])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return dict(said, examples_per_second=round(batch / min(times), 1),
                median=round(batch / statistics.median(times), 1), repetitions=len(times),
                others_cores=others, peak_rss_mb=round(peak / 1024),
                rss_before_mb=round(before / 1024))


# ------------------------------------------------------------------ around measurements

def spawn(what, timed, end):
    """A measurement in a fresh process. It is given up after 40 seconds or at the end."""
    seconds = min(40, end - time.monotonic())
    if seconds < 5:
        return dict(what, late=True, error="no time left")
    words = [sys.executable, "-B", os.path.abspath(__file__), "--one", json.dumps(what),
             "--timed", str(timed)]
    env = dict(os.environ)
    if what["malloc"] == "keep":
        env["GLIBC_TUNABLES"] = KEEP
    try:
        run = subprocess.run(words, capture_output=True, text=True, timeout=seconds,
                             env=env)
    except subprocess.TimeoutExpired:
        return dict(what, late=True, error=f"not done after {seconds:.0f} s")
    if run.returncode != 0:
        last = (run.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return dict(what, error=f"exit {run.returncode}: {last}")
    return json.loads(run.stdout.splitlines()[-1])


def better(new, old):
    """The more telling of two measurements of the same thing."""
    if "error" in new or "error" in old:
        return old if "error" in new else new
    return max(new, old, key=lambda line: line["examples_per_second"])


def fastest(lines):
    good = [line for line in lines if "error" not in line]
    return max(good, key=lambda line: line["examples_per_second"], default=None)


def compare(lines, net, batch):
    here = [line for line in lines if line["net"] == net and line["batch"] == batch]
    plain = fastest(line for line in here if line["mode"] == "plain")
    private = fastest(line for line in here if line["mode"] != "plain")
    said = {"summary": net, "batch": batch, "malloc": here[0]["malloc"]}
    for key, line in (("plain", plain), ("private", private)):
        if line:
            said[key] = line["examples_per_second"]
            said[key + "_by"] = line["format"] if key == "plain" else line["mode"]
            said[key + "_peak_rss_mb"] = line["peak_rss_mb"]
    for line in here:
        if line["mode"] != "plain":
            said["opacus_" + line["mode"]] = line.get("examples_per_second")
    if plain and private:
        said["private_over_plain"] = round(said["private"] / said["plain"], 3)
    # One disturbed side makes a ratio worthless, whichever it is.
    said["most_others_cores"] = max(line.get("others_cores") or 0 for line in here)
    said["late"] = sum("late" in line for line in here)
    return said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--malloc", choices=("keep", "default"), default="keep")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--timed", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one, asked.timed)))
        return 0

    plan = QUICK if asked.quick else FULL
    end = time.monotonic() + plan["limit"]
    todo = [{"net": net, "batch": batch, "mode": mode, "format": form,
             "malloc": asked.malloc}
            for batch in plan["batches"] for net in NETWORKS
            for mode, form in [("plain", form) for form in plan["formats"]] +
                              [(mode, "contiguous") for mode in plan["modes"]]]
    lines, took = [], []
    for what in todo:
        start = time.monotonic()
        lines.append(spawn(what, plan["timed"], end))
        took.append(time.monotonic() - start)
        print(json.dumps(lines[-1]), flush=True)
    # Late ones first, then the most disturbed; what failed otherwise will fail again.
    def disturbance(i):
        return 99 if lines[i].get("late") else lines[i].get("others_cores") or 0

    for i in sorted(range(len(lines)), key=disturbance, reverse=True):
        if ("error" in lines[i] and not lines[i].get("late") or
                max(took[i], 10) > end - time.monotonic()):
            continue
        again = spawn(todo[i], plan["timed"], end)
        print(json.dumps(dict(again, again=True)), flush=True)
        lines[i] = better(again, lines[i])
    for net in NETWORKS:
        for batch in plan["batches"]:
            print(json.dumps(compare(lines, net, batch)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
