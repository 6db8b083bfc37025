"""A plan of 10M samples from numpy beside the same plan from C, in turn; CPU seconds, medians of pairs. And the
import of hbp beside numpy's.

    bench_python.py BENCH_SPEED [COUNT]

The package hbp must be importable; HBP_LIBRARY names libhbp.so.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import hbp

PAIRS = 5
IMPORTS = 21


def draw(program: str, count: int) -> np.ndarray:
    """The lengths that `program` plans for itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lengths.u32"
        subprocess.run([program, "--write", str(count), str(path)], check=True)
        return np.fromfile(path, dtype="<u4")


def time_c(program: str, count: int) -> tuple[float, int]:
    answer = subprocess.run([program, "--epoch", str(count)], check=True, capture_output=True, text=True)
    seconds, digest = answer.stdout.split()
    return float(seconds), int(digest, 16)


def time_python(lengths: np.ndarray, cost: hbp.Cost) -> tuple[float, int]:
    start = time.process_time()
    plan = hbp.plan_epoch(lengths, cost)
    seconds = time.process_time() - start
    return seconds, plan.digest


def time_imports() -> tuple[float, float]:
    """Milliseconds of numpy's import and of hbp's after it, medians over processes of their own."""
    code = "import time; a = time.perf_counter(); import numpy; b = time.perf_counter(); import hbp; "
    code += "print(b - a, time.perf_counter() - b)"
    command = [sys.executable, "-c", code]
    times = [subprocess.run(command, check=True, capture_output=True).stdout.split() for _ in range(IMPORTS)]
    numpy_s, hbp_s = zip(*times)
    return 1e3 * statistics.median(map(float, numpy_s)), 1e3 * statistics.median(map(float, hbp_s))


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print("usage: bench_python.py BENCH_SPEED [COUNT]", file=sys.stderr)
        return 2
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 10_000_000
    cost = hbp.Cost(hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100", nodes=4))
    narrow = draw(program, count)
    wide = narrow.astype(np.int64)
    print(f"\n== Planning {count} samples from numpy beside C, medians of {PAIRS} pairs")
    from_c, from_narrow, from_wide = [], [], []
    for _ in range(PAIRS):
        times = time_c(program, count), time_python(narrow, cost), time_python(wide, cost)
        if len({digest for _, digest in times}) != 1:
            print("C and Python made different plans", file=sys.stderr)
            return 1
        for seconds, (value, _) in zip((from_c, from_narrow, from_wide), times):
            seconds.append(value)
    print(f"{'C':44} {statistics.median(from_c):.3f} s")
    for name, seconds in (("uint32 from numpy", from_narrow), ("int64 from numpy", from_wide)):
        ratio = statistics.median(a / b for a, b in zip(seconds, from_c))
        print(f"{name:44} {statistics.median(seconds):.3f} s, {ratio:.2f} times C")
    numpy_ms, hbp_ms = time_imports()
    print(f"{'import hbp, after numpy':44} {hbp_ms:.0f} ms, numpy {numpy_ms:.0f} ms; medians of {IMPORTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
