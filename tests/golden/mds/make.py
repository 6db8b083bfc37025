"""Writes the data sets in this folder with mosaicml-streaming's own writer (0.13.0 wrote those that are here).
usage: make.py FOLDER"""

import os
import sys

import numpy as np
from streaming import MDSWriter

LENGTHS = [3, 1, 2, 300, 5, 255, 256]


def tokens(count, dtype):
    return (np.arange(count) % 200).astype(dtype)


def write(name, columns, sample, **options):
    with MDSWriter(columns=columns, out=os.path.join(sys.argv[1], name), **options) as out:
        for length in LENGTHS:
            out.write(sample(length))


write(
    "plain",
    {"tokens": "ndarray:uint16", "text": "str", "id": "int"},
    lambda n: {"tokens": tokens(n, np.uint16), "text": "a" * (n % 7), "id": n},
    size_limit=900,
)
write(
    "zstd",
    {"input_ids": "ndarray", "length": "uint32"},
    lambda n: {"input_ids": tokens(n, np.int64), "length": np.uint32(n)},
    compression="zstd:3",
    hashes=["sha1"],
    size_limit=2500,
)
write(
    "gz",
    {"tokens": "bytes", "images": "int8", "loss": "str_int", "image": "ndarray:uint8:2,2"},
    lambda n: {
        "tokens": tokens(n, np.int64).tobytes(),
        "images": np.int8(n % 3),
        "loss": n // 2,
        "image": np.zeros((2, 2), np.uint8),
    },
    compression="gz",
)
