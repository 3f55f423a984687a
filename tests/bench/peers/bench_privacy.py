"""The privacy core against its peers, alternating within one run: Gaussian noise against
torch.randn on the same cores, an epsilon by PLD against Google's dp-accounting.

    bench_privacy.py BUILD/bench/privacy BUILD/bin/dpflow
"""

import json
import subprocess
import sys
import time

import torch
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

ROUNDS = 7
PARAMETERS = 10_000_000
QUERIES = [(4, 0.01, 10000, 1e-5), (1.5, 0.04, 2250, 1e-5), (1.1, 256 / 60000, 14062, 1e-5)]


def clock(action):
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result


def ours(program, *arguments):
    line = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(line.stdout)


def noise(program, cores):
    torch.set_num_threads(cores)
    torch.randn(PARAMETERS)
    theirs = best = 1e9
    for _ in range(ROUNDS):
        for _ in range(5):
            theirs = min(theirs, clock(lambda: torch.randn(PARAMETERS))[0] * 1e3)
        best = min(best, ours(program, "noise", PARAMETERS, cores)["ms"])
    print(f"noise for {PARAMETERS:,} parameters, {cores} threads: ours {best:.1f} ms, "
          f"torch.randn {theirs:.1f} ms: {theirs / best:.2f} x (at least 1)")


def google(sigma, rate, steps, delta):
    accountant = PLDAccountant()
    event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma))
    accountant.compose(dp_event.SelfComposedDpEvent(event, steps))
    return accountant.get_epsilon(delta)


def account(program, dpflow, sigma, rate, steps, delta):
    mechanism = f"sigma={sigma},q={rate},steps={steps}"
    command = [dpflow, "account", "--gaussian", mechanism, "--delta", str(delta), "--method",
               "pld", "--json"]
    theirs = whole = inside = 1e9
    for _ in range(ROUNDS):
        took, reference = clock(lambda: google(sigma, rate, steps, delta))
        theirs = min(theirs, took * 1e3)
        took, line = clock(lambda: subprocess.run(command, check=True, capture_output=True))
        whole = min(whole, took * 1e3)
        inside = min(inside, ours(program, "account", sigma, rate, steps, delta)["ms"])
    epsilon = json.loads(line.stdout)["epsilon"]
    print(f"PLD of {mechanism}: epsilon {epsilon:.4f} (dp-accounting {reference:.4f}), "
          f"ours {inside:.1f} ms, with the program's start {whole:.1f} ms, dp-accounting "
          f"{theirs:.0f} ms: {theirs / inside:.0f} x and {theirs / whole:.0f} x (at least 10)")


def main():
    program, dpflow = sys.argv[1:3]
    for cores in sorted({1, torch.get_num_threads()}):
        noise(program, cores)
    for query in QUERIES:
        account(program, dpflow, *query)


main()
