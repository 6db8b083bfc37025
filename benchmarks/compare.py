#!/usr/bin/env python3
"""Compares two results of benchmarks: ratios per figure, and those that got worse by more than a threshold.

usage: compare.py OLD.json NEW.json [--threshold PERCENT] [--clock PERCENT] [--all]

A file holds what benchmarks wrote to $BENCH_JSON: one object, or a list of them as benchmarks/run.sh writes. A figure that was
measured beside a yardstick is compared by its ratio to it. One of the clock without a yardstick is compared only where both
results are of one CPU and one compiler. What the clock measures is the same within --clock (20 %: the same program twice on a busy
machine differs by as much), everything else within --threshold (.5 %: plans are deterministic). What is the same is counted, and listed
with --all. Standard library alone.

Exit status: 0 when nothing is worse, 1 when a figure is worse or missing, 2 when a file cannot be read.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any, Optional

CLOCK = {"s", "ms", "us", "ns", "MB/s", "GB/s", "Gflop/s"}


def fail(text: str) -> None:
    print(f"compare.py: {text}", file=sys.stderr)
    sys.exit(2)


def load(path: str) -> dict[str, dict[str, Any]]:
    """The runs of a file by program and options."""
    try:
        with open(path, encoding="utf-8") as file:
            runs = json.load(file)
        runs = runs if isinstance(runs, list) else [runs]
        found: dict[str, dict[str, Any]] = {}
        for run in runs:
            metrics = {}
            for metric in run["metrics"]:
                if metric["better"] not in ("lower", "higher") or not isinstance(metric["unit"], str):
                    raise ValueError(f"{metric['name']}: better is {metric['better']!r}")
                metrics[metric["name"]] = metric
            found[run["benchmark"]] = {**run, "metrics": metrics}
        return found
    except OSError as error:
        fail(f"cannot open {path}: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fail(f"{path} is no result of benchmarks: {error!r}")
    raise AssertionError


def shown(metric: dict[str, Any], value: Optional[float]) -> str:
    if value is None:
        return "not measured"
    text = f"{value:.4g}" if abs(value) < 1e5 else f"{value:,.0f}"
    unit = f" x {metric['yardstick']}" if metric.get("yardstick") else "" if metric["unit"] in ("x", "1") else f" {metric['unit']}"
    return text + unit


def value_of(metric: dict[str, Any]) -> Optional[float]:
    return metric.get("ratio") if metric.get("yardstick") else metric["value"]


def change_of(metric: dict[str, Any], old: float, new: float) -> float:
    """How much worse, as a factor: above 1 is worse, whichever way is better."""
    if old == new:
        return 1.0
    if metric["better"] == "higher":
        old, new = new, old
    if old <= 0 or new < 0:  # no ratio: from nothing, or across 0
        return math.inf if new > old else 0.0
    return new / old


class Report:
    def __init__(self, threshold: float, clock: float, everything: bool) -> None:
        self.threshold, self.clock, self.everything = threshold, clock, everything
        self.worse = self.better = self.same = self.left_out = self.missing = 0

    def line(self, mark: str, name: str, text: str) -> None:
        print(f"  {mark:<9} {name}: {text}")

    def compare(self, name: str, old: dict[str, Any], new: dict[str, Any], comparable: bool) -> None:
        if (old["unit"], old["better"], old.get("yardstick")) != (new["unit"], new["better"], new.get("yardstick")):
            self.missing += 1
            return self.line("CHANGED", name, "its unit, yardstick or direction is another; not compared")
        was, now = value_of(old), value_of(new)
        if was is None or now is None:
            if was is None and now is None:
                return None
            self.missing += now is None
            return self.line("MISSING" if now is None else "new", name, f"{shown(old, was)} -> {shown(new, now)}")
        if new["unit"] in CLOCK and not new.get("yardstick") and not comparable:
            self.left_out += 1
            if self.everything:
                self.line("not comp.", name, f"{shown(old, was)} -> {shown(new, now)}")
            return None
        change = change_of(new, was, now)
        ratio = f"{now / was:.3f} x" if was else "from 0"
        text = f"{shown(old, was)} -> {shown(new, now)} ({ratio})"
        allowed = 1 + (self.clock if new["unit"] in CLOCK else self.threshold)
        if change > allowed:
            self.worse += 1
            self.line("WORSE", name, text)
        elif change < 1 / allowed:
            self.better += 1
            self.line("better", name, text)
        else:
            self.same += 1
            if self.everything:
                self.line("", name, text)
        return None


def compare_runs(report: Report, name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    print(f"{name}: {old.get('commit')} of {old.get('date')} -> {new.get('commit')} of {new.get('date')}")
    comparable = True
    for key in ("cpu", "compiler"):
        if old.get(key) != new.get(key):
            comparable = False
            print(f"  another {key}: {old.get(key)} -> {new.get(key)}; figures of the clock are compared beside yardsticks alone")
    for metric in [*old["metrics"], *(m for m in new["metrics"] if m not in old["metrics"])]:
        if metric not in new["metrics"]:
            report.missing += 1
            report.line("MISSING", metric, f"was {shown(old['metrics'][metric], value_of(old['metrics'][metric]))}")
        elif metric not in old["metrics"]:
            report.line("new", metric, shown(new["metrics"][metric], value_of(new["metrics"][metric])))
        else:
            report.compare(metric, old["metrics"][metric], new["metrics"][metric], comparable)


def main(arguments: list[str]) -> int:
    allowed, everything, paths = {"--threshold": 0.5, "--clock": 20.0}, False, []
    rest = iter(arguments)
    for argument in rest:
        if argument in allowed:
            try:
                allowed[argument] = float(next(rest, ""))
            except ValueError:
                fail(f"{argument} takes a number of percent")
        elif argument == "--all":
            everything = True
        else:
            paths.append(argument)
    if len(paths) != 2 or any(p.startswith("--") for p in paths) or not all(0 <= a < math.inf for a in allowed.values()):
        fail("usage: compare.py OLD.json NEW.json [--threshold PERCENT] [--clock PERCENT] [--all]")
    old, new = load(paths[0]), load(paths[1])
    report = Report(allowed["--threshold"] / 100, allowed["--clock"] / 100, everything)
    for name in old:
        if name in new:
            compare_runs(report, name, old[name], new[name])
        else:
            report.missing += len(old[name]["metrics"])
            print(f"{name}: MISSING from {paths[1]}")
    for name in new:
        if name not in old:
            print(f"{name}: new")
    print(f"{report.worse} worse and {report.better} better by more than {allowed['--threshold']:g} % "
          f"({allowed['--clock']:g} % of the clock's), {report.same} the same, "
          f"{report.missing} missing or changed, {report.left_out} not comparable")
    return 1 if report.worse or report.missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
