"""What notebooks show: plans and summaries as HTML, a step as a picture."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Iterable, Sequence

import numpy as np

from ._optional import need
from ._text import many

if TYPE_CHECKING:
    from .plans import Plan, Step

SHOWN_ROWS = 10


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def row(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(_text(cell))}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{row('th', names)}{''.join(row('td', cells) for cells in rows)}</table>"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _lines(text: str) -> str:
    return "<p>" + "<br>".join(map(html.escape, text.split("\n"))) + "</p>"


def struct_html(struct: Any) -> str:
    """A struct: what it says of itself, and its fields."""
    said = str(struct)
    fields = ((name, value) for name, value in struct.as_dict().items() if value is not None)
    rows = ((name, f"{value:016x}" if name.endswith("digest") else value) for name, value in fields)
    table = _table(("", type(struct).__name__), rows)
    if said == repr(struct):
        return table
    return f"{_lines(said)}<details><summary>all fields</summary>{table}</details>"


def plan_html(plan: Plan) -> str:
    """The summary, and the first steps."""
    rows = [
        (
            step.index,
            len(step.micro_batches),
            step.samples,
            step.tokens,
            step.predicted_ns / 1e6,
            " ".join(step.groups()),
        )
        for step in (plan.step(index) for index in range(min(len(plan), SHOWN_ROWS)))
    ]
    names = ("step", "micro-batches", "samples", "tokens", "predicted ms", "SP groups")
    more = f"<p>and {len(plan) - len(rows):,} more steps</p>" if len(plan) > len(rows) else ""
    return _lines(str(plan.summary())) + _table(names, rows) + more


def step_html(step: Step) -> str:
    """The packs of a step."""
    rows: list[tuple[Any, ...]] = []
    packs = 0
    for number, micro_batch in enumerate(step):
        packs += len(micro_batch)
        for pack in micro_batch[: SHOWN_ROWS * 4 - len(rows)]:
            of = f"{pack.first_rank} to {pack.ranks.stop - 1}" if pack.sp > 1 else pack.first_rank
            rows.append(
                (number, of, pack.sp, len(pack), pack.tokens, pack.recompute, pack.predicted_ns / 1e6)
            )
    names = ("micro-batch", "ranks", "SP", "samples", "tokens", "layers recomputed", "predicted ms")
    more = f"<p>and {packs - len(rows):,} more packs</p>" if packs > len(rows) else ""
    return _lines(repr(step)) + _table(names, rows) + more


def pack_starts(step: Step) -> list[int]:
    """When each pack of a step starts, in ns from the step's beginning: once all ranks of the lockstep sets
    that it lies in have ended their last micro-batch."""
    plan = step.plan
    summary = plan.summary()
    size = summary.lockstep_ranks or summary.ranks
    free = [0] * -(-summary.ranks // size)
    starts: list[int] = []
    for micro_batch in step:
        ends = list(free)
        for pack in micro_batch:
            sets = range(pack.first_rank // size, (pack.first_rank + pack.sp - 1) // size + 1)
            starts.append(max(free[part] for part in sets))
            for part in sets:
                ends[part] = max(ends[part], starts[-1] + pack.predicted_ns)
        free = ends
    return starts


def plot(step: Step, ax: Any) -> Any:
    """See Step.plot."""
    pyplot = need("matplotlib.pyplot", "plot")
    if ax is None:
        ax = pyplot.subplots(figsize=(10, 4), layout="constrained")[1]
    packs, starts = step.packs(), np.array(pack_starts(step), np.int64)
    firsts = np.array([pack.first_rank for pack in packs])
    sp = np.array([pack.sp for pack in packs])
    ns = np.array([pack.predicted_ns for pack in packs])
    padding = np.array([pack.is_padding for pack in packs])
    degrees = np.unique(sp[~padding]).tolist()
    colours = pyplot.get_cmap("viridis")(np.linspace(0.15, 0.9, max(len(degrees), 1)))
    parts = [(f"SP {degree}", ~padding & (sp == degree), colour) for degree, colour in zip(degrees, colours)]
    for label, rows, colour in [*parts, ("padding", padding, "lightgrey")]:
        if rows.any():
            ax.barh(
                firsts[rows],
                ns[rows] / 1e6,
                left=starts[rows] / 1e6,
                height=sp[rows],
                align="edge",
                color=colour,
                edgecolor="white",
                linewidth=0.5,
                label=label,
            )
    ax.set_xlim(0, step.predicted_ns / 1e6)
    ax.set_ylim(int((firsts + sp).max()), 0)
    ax.set_xlabel("ms, as predicted")
    ax.set_ylabel("rank")
    held = f"{many(len(step.micro_batches), 'micro-batch')}, {many(step.samples, 'sample')}"
    ax.set_title(f"step {step.index}: {held}")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax
