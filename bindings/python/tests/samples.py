"""Inputs that several tests share."""

import functools

import numpy as np

import hbp


@functools.lru_cache(maxsize=None)
def cost(nodes: int = 1) -> hbp.Cost:
    return hbp.Cost(hbp.Model.preset("llama-3.1-8b"), hbp.Machine.preset("h100", nodes=nodes))


def lengths(count: int = 3000, seed: int = 1) -> np.ndarray:
    """Mostly short, a few long: uint32."""
    drawn = np.exp(np.random.default_rng(seed).normal(6.5, 1.3, count))
    return np.clip(drawn, 16, 60000).astype(np.uint32)


@functools.lru_cache(maxsize=None)
def plan(count: int = 3000, **options) -> hbp.Plan:
    return hbp.plan_epoch(lengths(count), cost(), max_length=65536, **options)
