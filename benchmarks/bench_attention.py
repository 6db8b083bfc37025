"""The executor's attention beside PyTorch's, on the same shapes and device, in turn.

    bench_attention.py BENCH_EXECUTOR [--device cpu|cuda] [--type f32|bf16] [--small] [--rounds N]

BENCH_EXECUTOR is bench_executor or bench_executor_cuda; its figures are read from what it prints. Beside it stands
flash_attn where that is installed (CUDA, bf16), else scaled_dot_product_attention where torch has it, else
softmax(QK^T)V with a mask written in torch. On the CPU both take one thread, and its seconds; on CUDA the wall clock.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from typing import Callable

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import torch  # noqa: E402  (reads the environment)

HEADS = re.compile(r"^== Attention.*: (\d+) heads, (\d+) of keys and values, of (\d+) each")
CASE = re.compile(r"^attention (\d+) x (\d+), (forward|backward)\s+([\d.]+) ms")
TITLE = re.compile(r"^== (Executor on .*)$")
Case = tuple[int, int]


def run_executor(command: list[str]) -> tuple[str, tuple[int, int, int], dict[tuple[Case, str], float]]:
    """Its heading, (heads, key-value heads, head dimension), and seconds by case and way."""
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        sys.exit(answer.stderr.strip())
    title, heads, seconds = "", None, {}
    for line in answer.stdout.splitlines():
        if found := TITLE.match(line):
            title = found[1]
        elif found := HEADS.match(line):
            heads = (int(found[1]), int(found[2]), int(found[3]))
        elif found := CASE.match(line):
            seconds[(int(found[1]), int(found[2])), found[3]] = float(found[4]) * 1e-3
    if heads is None or not seconds:
        sys.exit(f"{command[0]} printed no attention")
    return title, heads, seconds


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Of [documents, tokens, heads, dimension]; key-value heads serve as many queries each as there are for one."""
    count, length, heads, dim = q.shape
    kv = k.shape[2]
    q = q.view(count, length, kv, heads // kv, dim).permute(0, 2, 3, 1, 4)
    k, v = (x.permute(0, 2, 1, 3).unsqueeze(2) for x in (k, v))
    scores = torch.matmul(q, k.transpose(-1, -2)) * dim**-0.5
    above = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
    out = torch.matmul(torch.softmax(scores.masked_fill(above, float("-inf")), -1), v)
    return out.permute(0, 3, 1, 2, 4).reshape(count, length, heads, dim)


def library_attention(takes_groups: bool) -> Callable[..., torch.Tensor]:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        attention = torch.nn.functional.scaled_dot_product_attention
        group = q.shape[2] // k.shape[2]
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if takes_groups:
            return attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)
        k, v = (x.repeat_interleave(group, 1) for x in (k, v))
        return attention(q, k, v, is_causal=True).transpose(1, 2)

    return attend


def choose(device: str, kind: torch.dtype) -> tuple[str, Callable[..., torch.Tensor]]:
    if device == "cuda" and kind == torch.bfloat16:
        try:
            import flash_attn
        except ImportError:
            pass
        else:
            flash = flash_attn.flash_attn_func
            return f"flash_attn {flash_attn.__version__}", lambda q, k, v: flash(q, k, v, causal=True)
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        return "softmax(QK^T)V with a mask", plain
    few = torch.zeros(1, 1, 2, 8, device=device, dtype=kind)
    try:
        library_attention(True)(few, few[:, :, :1], few[:, :, :1])
    except TypeError:
        return "scaled_dot_product_attention of repeated keys and values", library_attention(False)
    return "scaled_dot_product_attention", library_attention(True)


class Clock:
    """Seconds of one run: of this process's CPU time, or of the wall clock with the GPU idle before and after."""

    def __init__(self, device: str) -> None:
        self.device = device

    def now(self) -> float:
        if self.device == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    def time(self, run: Callable[[], object]) -> float:
        run()
        start = self.now()
        run()
        once = max(self.now() - start, 1e-9)
        runs = int(min(max(0.02 / once, 1), 64))
        start = self.now()
        for _ in range(runs):
            run()
        return (self.now() - start) / runs


def time_torch(
    attend: Callable[..., torch.Tensor], case: Case, heads: tuple[int, int, int], kind: torch.dtype, clock: Clock
) -> dict[str, float]:
    """Seconds forward and backward; documents of one length make a batch, so nothing is padded."""
    count, length = case
    generator = torch.Generator().manual_seed(1)

    def draw(many: int) -> torch.Tensor:
        x = torch.rand(count, length, many, heads[2], generator=generator) * 2 - 1
        return x.to(clock.device, kind)

    q, k, v, d_out = draw(heads[0]), draw(heads[1]), draw(heads[1]), draw(heads[0])
    with torch.no_grad():
        forward = clock.time(lambda: attend(q, k, v))
    for x in (q, k, v):
        x.requires_grad_()
    out = attend(q, k, v)
    backward = clock.time(lambda: torch.autograd.grad(out, (q, k, v), d_out, retain_graph=True))
    return {"forward": forward, "backward": backward}


def check(attend: Callable[..., torch.Tensor], heads: tuple[int, int, int], kind: torch.dtype, device: str) -> None:
    """What is timed is attention: against rows of softmax, one by one."""
    generator = torch.Generator().manual_seed(2)
    q, k, v = (torch.rand(2, 9, n, heads[2], generator=generator).to(device, kind) for n in (heads[0], *[heads[1]] * 2))
    out = attend(q, k, v).float()
    group = heads[0] // heads[1]
    for head in (0, heads[0] - 1):
        for row in (0, 8):
            keys, values = (x[1, : row + 1, head // group].float() for x in (k, v))
            weights = torch.softmax(keys @ q[1, row, head].float() * heads[2] ** -0.5, 0)
            if not torch.allclose(out[1, row, head], weights @ values, atol=2e-2 if kind != torch.float32 else 1e-5):
                sys.exit("PyTorch's attention is not causal attention")


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--type", choices=("f32", "bf16"))
    parser.add_argument("--small", action="store_true", help="short documents: does it run?")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def main() -> int:
    arguments = read_arguments()
    kind = arguments.type or ("bf16" if arguments.device == "cuda" else "f32")
    torch_kind = torch.bfloat16 if kind == "bf16" else torch.float32
    torch.set_num_threads(1)
    clock = Clock(arguments.device)
    name, attend = choose(arguments.device, torch_kind)
    command = [arguments.program, "--attention", "--device", arguments.device, "--type", kind]
    command += ["--small"] if arguments.small else []
    own: dict[tuple[Case, str], list[float]] = {}
    other: dict[tuple[Case, str], list[float]] = {}
    for turn in range(max(arguments.rounds, 1)):
        title, heads, seconds = run_executor(command)
        if turn == 0:
            check(attend, heads, torch_kind, arguments.device)
        for key, value in seconds.items():
            own.setdefault(key, []).append(value)
        for case in {case for case, _ in seconds}:
            for way, value in time_torch(attend, case, heads, torch_kind, clock).items():
                other.setdefault((case, way), []).append(value)
    device = torch.cuda.get_device_name() if arguments.device == "cuda" else "this CPU"
    print(f"\n== Attention beside PyTorch {torch.__version__}: {name}, on {device}, {kind}")
    print(f"{title}; rounds in turn: {arguments.rounds}")
    print(f"{'documents x tokens':44} {'executor':>12} {'PyTorch':>12}   PyTorch / executor (range)")
    for (case, way), times in own.items():
        ratios = sorted(b / a for a, b in zip(times, other[case, way]))
        print(
            f"{f'{case[0]} x {case[1]}, {way}':44} {1e3 * statistics.median(times):9.3f} ms"
            f" {1e3 * statistics.median(other[case, way]):9.3f} ms"
            f"   {statistics.median(ratios):6.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
