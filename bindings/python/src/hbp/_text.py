"""What summaries and reprs are made of."""


def many(number: int, thing: str) -> str:
    """The number and what it counts: "1 step", "1,024 steps", "2 micro-batches"."""
    return f"{number:,} {thing}{'' if number == 1 else 'es' if thing.endswith('batch') else 's'}"
