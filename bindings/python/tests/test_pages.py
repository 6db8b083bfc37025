"""The lines of the how-to pages that go from a data set to a plan, run as printed."""

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hbp

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "own-data.md"
REAL = all(importlib.util.find_spec(name) for name in ("datasets", "tokenizers"))
# What the page needs of packages that may not be there: words are tokens.
STAND_INS = {
    "tokenizers": """
class Encoding:
    def __init__(self, text): self.ids = [len(word) for word in text.split()]
class Tokenizer:
    @classmethod
    def from_file(cls, path): open(path).close(); return cls()
    def encode_batch(self, texts): return [Encoding(text) for text in texts]
""",
    "datasets": """
import json
class Dataset:
    def __init__(self, columns): self.columns = columns
    def map(self, function, batched):
        assert batched
        return Dataset({**self.columns, **function(self.columns)})
    def __getitem__(self, key):
        if isinstance(key, str): return self.columns[key]
        return {name: column[key] for name, column in self.columns.items()}
def load_dataset(kind, data_files, split):
    assert (kind, split) == ("json", "train")
    return Dataset({"text": [json.loads(line)["text"] for line in open(data_files)]})
""",
    "torch": """
class Tensor:
    def __init__(self, values): self.values = values
    def unsqueeze(self, axis): return Tensor(self.values[None])
    @property
    def shape(self): return self.values.shape
def from_numpy(values): return Tensor(values)
""",
}
CHECK = """
seen = sorted(int(i) for step in plan for micro_batch in step for pack in micro_batch for i in pack.ids)
lengths = [len(ids) for ids in data["input_ids"]]
print(json.dumps([lengths, seen, plan.digest, batch["input_ids"].shape[1], pack.tokens]))
"""


CHECK_FILE = """
import hbp
read = hbp.Lengths.read("lengths.npy")
due = [len(text.ids) for text in tokenizer.encode_batch(data["text"][:])]
print(json.dumps([[read[i] for i in range(len(read))], due]))
"""


def snippet(heading: str = "From a data set and a tokenizer") -> str:
    return re.search(rf"## {heading}\n\n```python\n(.*?)```", PAGE.read_text(), re.S)[1]


@unittest.skipUnless(PAGE.exists(), "the documentation is not beside the package")
class TestFromADataSet(unittest.TestCase):
    def run_page(self, folder: Path, stand_ins: "list[str]", lines: "str | None" = None) -> "list":
        draw = random.Random(3)
        words = ["a", "pack", "of", "samples", "long", "short"]
        with open(folder / "chats.jsonl", "w") as file:
            for _ in range(64):
                text = " ".join(draw.choices(words, k=int(draw.lognormvariate(4, 1)) + 1))
                file.write(json.dumps({"text": text}) + "\n")
        modules = folder / "modules"
        modules.mkdir()
        for name in stand_ins:
            (modules / f"{name}.py").write_text(STAND_INS[name])
        paths = [str(modules), str(Path(hbp.__file__).parents[1])]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "HF_HOME": str(folder),
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
        }
        code = "import json\n" + (lines or snippet() + CHECK)
        result = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout.splitlines()[-1])

    def check(self, answer: "list") -> None:
        lengths, seen, digest, tokens, of_pack = answer
        self.assertEqual(seen, list(range(64)))
        data = hbp.Lengths.from_array(lengths, shifted_loss=True)
        plan = hbp.plan(data, "llama-3.1-8b", "h100:4", max_length=131072)
        self.assertEqual(plan.digest, digest)
        self.assertEqual(tokens, max(of_pack, 1))

    def test_ten_lines(self):
        self.assertLessEqual(len([line for line in snippet().splitlines() if line.strip()]), 10)

    def test_lengths_npy(self):
        lines = snippet("From a data set to lengths.npy") + CHECK_FILE
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "tokenizer.json").write_text("{}")
            read, due = self.run_page(Path(folder), ["tokenizers", "datasets"], lines)
            self.assertEqual((read, len(read)), (due, 64))

    def test_with_stand_ins(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "tokenizer.json").write_text("{}")
            self.check(self.run_page(Path(folder), ["tokenizers", "datasets", "torch"]))

    @unittest.skipUnless(REAL, "there is no datasets, or no tokenizers")
    def test_with_the_packages(self):
        import tokenizers

        with tempfile.TemporaryDirectory() as folder:
            made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="?"))
            made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
            trainer = tokenizers.trainers.BpeTrainer(special_tokens=["?"], vocab_size=60)
            made.train_from_iterator(["a pack of long and short samples"] * 9, trainer)
            made.save(str(Path(folder, "tokenizer.json")))
            self.check(self.run_page(Path(folder), [] if importlib.util.find_spec("torch") else ["torch"]))
            for left in ("chats.jsonl", "modules/torch.py"):
                Path(folder, left).unlink(missing_ok=True)
            Path(folder, "modules").rmdir()
            read, due = self.run_page(Path(folder), [], snippet("From a data set to lengths.npy") + CHECK_FILE)
            self.assertEqual((read, len(read)), (due, 64))


if __name__ == "__main__":
    unittest.main()
