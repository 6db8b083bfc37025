"""A reader of plan files written from docs/explanation/file-format.md alone, against the library."""

import struct
import tempfile
import unittest
import zlib
from pathlib import Path

import numpy as np
import samples

import hbp

GOLDEN = Path(__file__).resolve().parents[3] / "tests" / "golden"
WORD = (1 << 64) - 1

# Columns in the order of the digest, with what tells that a plan has them.
COLUMNS = (
    ("step_offsets", ""), ("step_ns", ""), ("step_loss_tokens", ""), ("step_samples", ""), ("step_tokens", ""),
    ("micro_batch_offsets", ""), ("micro_batch_ns", ""), ("micro_batch_modalities", "modalities"),
    ("pack_offsets", ""), ("pack_ranks", ""), ("pack_sp", ""), ("pack_recompute", ""), ("pack_capacity", ""),
    ("pack_tokens", ""), ("pack_padded_tokens", ""), ("pack_squares", ""), ("pack_loss_tokens", ""),
    ("pack_ns", ""), ("pack_bytes", ""), ("pack_vision", "vision"), ("pack_vision_capacity", "vision"),
    ("sample_ids", ""), ("sample_tokens", ""), ("sample_first_tokens", "split"), ("sample_loss_tokens", "loss"),
    ("sample_vision", "vision"), ("sample_modalities", "modalities"), ("dropped_ids", ""), ("dropped_reasons", ""),
)  # fmt: skip


class Msgpack:
    """The part of msgpack that plan files use."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, code):
        return struct.unpack(">" + code, self.take(struct.calcsize(code)))[0]

    def map(self, count):
        return {self.read(): self.read() for _ in range(count)}

    def read(self):
        kind = self.number("B")
        if kind < 0x80:
            return kind
        if kind < 0x90:
            return self.map(kind & 15)
        if kind < 0xA0:
            return [self.read() for _ in range(kind & 15)]
        if kind < 0xC0:
            return self.take(kind & 31).decode()
        if kind >= 0xE0:
            return kind - 256
        numbers = dict(zip(range(0xCA, 0xD4), "fdBHIQbhiq"))
        if kind in numbers:
            return self.number(numbers[kind])
        size = self.number({0xC4: "B", 0xC5: "H", 0xC6: "I", 0xD9: "B", 0xDA: "H", 0xDC: "H", 0xDE: "H"}[kind])
        if kind == 0xDC:
            return [self.read() for _ in range(size)]
        if kind == 0xDE:
            return self.map(size)
        return self.take(size) if kind < 0xD0 else self.take(size).decode()


def read_plan(path):
    """The header, and the columns of the whole plan."""
    data = Path(path).read_bytes()
    tail = data[-34:]
    magic, version, index_at, size, index_crc, tail_crc = struct.unpack("<4sIQQII", tail[2:])
    assert (magic, size, tail_crc) == (b"HBPE", len(data), zlib.crc32(tail[:30]))
    assert index_crc == zlib.crc32(data[index_at:-34])
    header = Msgpack(data).read()
    assert (header["format"], header["version"]) == ("hbp-plan", version) and version <= 3
    index = Msgpack(data[index_at:]).read()
    columns = {name: [] for name, _ in COLUMNS}
    first = dict.fromkeys(("micro_batches", "packs", "samples"), 0)
    for offset in np.frombuffer(index["offset"]["data"], index["offset"]["dtype"]).tolist():
        chunk = Msgpack(data[offset:]).read()
        assert zlib.crc32(chunk["data"]) == chunk["crc32"]
        for name, column in Msgpack(zlib.decompress(chunk["data"])).read().items():
            values = np.frombuffer(column["data"], column["dtype"]).tolist()
            below = {"step_offsets": "micro_batches", "micro_batch_offsets": "packs", "pack_offsets": "samples"}.get(name)
            if below:  # counted from the chunk's own first row, and one value more than rows
                values = [value + first[below] for value in values]
                values = values if not columns[name] else values[1:]
            columns[name] += values
        for table in first:
            first[table] += chunk[table]
    return header, columns


def digest_plan(header, columns):
    lanes = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
    count = 0

    def add(value):
        nonlocal count
        x = lanes[count % 4] ^ ((value & WORD) * 0x9FB21C651E98DF25 & WORD)
        lanes[count % 4] = ((x << 29 | x >> 35) & WORD) * 0xD6E8FEB86659FD93 + 1 & WORD
        count += 1

    fields = ("ranks", "domain_ranks", "proven", "first_step", "pack_multiple", "sequence_multiple",
              "micro_batch_multiple", "overlong_samples", "overlong_tokens")  # fmt: skip
    add(len(fields))
    for name in fields + ("seed", "epoch", "lengths_digest"):
        add(header[name])
    per_sp = [header.get(name, 0) for name in ("sequence_multiple_per_sp", "pack_multiple_per_sp")]
    if any(per_sp):
        for value in per_sp:
            add(value)
    later = 4 * ("vision" in header) + 8 * ("modalities" in header)
    if later:
        add(later)
    for name, needs in COLUMNS:
        if needs in ("vision", "modalities") and needs not in header:
            continue
        add(len(columns[name]))
        for value in columns[name]:
            add(value)

    def mix(x):
        x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & WORD
        x = (x ^ x >> 29) * 0x9FB21C651E98DF25 & WORD
        return x ^ x >> 32

    digest = mix(lanes[0] ^ count)
    for lane in lanes[1:]:
        digest = mix(digest ^ lane)
    return digest


class TestFileFormat(unittest.TestCase):
    def check(self, path):
        header, columns = read_plan(path)
        plan = hbp.Plan.load(path)
        self.assertEqual(digest_plan(header, columns), header["digest"])
        self.assertEqual(header["digest"], plan.summary().digest)
        for name, needs in COLUMNS:
            own = getattr(plan, name)
            self.assertEqual(columns[name], [] if own is None else own.tolist(), name)
        return header, columns

    def test_golden_files(self):
        versions = [self.check(GOLDEN / f"{name}.msgpack")[0]["version"] for name in ("plan", "bound", "vision", "padding")]
        self.assertEqual(versions, [1, 1, 2, 3])

    def test_chunks_and_dropped_samples(self):
        rng = np.random.default_rng(7)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "plan.msgpack")
            for policy in ("drop", "split"):
                lengths = np.minimum(rng.geometric(1 / 1500, 700), 30000)
                data = hbp.Lengths.from_array(lengths, shifted_loss=policy == "drop").limit(6000, policy)
                plan = hbp.plan_epoch(data, samples.cost())
                plan.save(path, chunk_steps=2)
                header, columns = self.check(path)
                self.assertEqual(set(columns["dropped_reasons"]) >= {1}, policy == "drop")
                self.assertEqual(len(columns["dropped_ids"]), header["dropped"])
                self.assertGreater(header["steps"], 2)
                self.assertEqual(header.get("shifted_loss", 0), int(policy == "drop"))
                self.assertEqual(header["loss"], int(policy == "drop"))
                self.assertEqual(hbp.Plan.load(path).shifted_loss, policy == "drop")

    def test_padding_by_degree(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "plan.msgpack")
            hbp.plan_step([300, 7000, 5000, 90], samples.cost(), sequence_multiple_per_sp=8).save(path)
            self.assertEqual(self.check(path)[0]["version"], 3)


if __name__ == "__main__":
    unittest.main()
