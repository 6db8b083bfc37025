"""A plugin of pytest for trainers' tests that download a tokenizer and a data set: both are made here, of words
that are drawn. What the tests assert, of packs and batches, holds for any text."""

from __future__ import annotations

import functools
import json
import os
import random
import tempfile
from typing import Any

import pytest

_WORDS = [f"word{k}" for k in range(500)]


@functools.lru_cache(maxsize=None)
def _tokenizer_folder() -> str:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    tokenizer = Tokenizer(models.WordLevel({word: k for k, word in enumerate(special + _WORDS)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    folder = os.path.join(tempfile.mkdtemp(), "Qwen2-0.5B")  # ms-swift goes by the name
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    made.add_special_tokens({"additional_special_tokens": special[3:]})
    made.save_pretrained(folder)
    return folder


def _texts(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(_WORDS, k=int(drawn.lognormvariate(5, 1)) + 2)) for _ in range(count)]


@pytest.fixture
def dataset_winglian_tiny_shakespeare() -> Any:
    """axolotl's."""
    from datasets import Dataset, DatasetDict

    return DatasetDict({"train": Dataset.from_dict({"text": _texts(64, 1)})})


@pytest.fixture
def tokenizer_huggyllama() -> Any:
    """axolotl's."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("huggyllama/llama-7b")
    tokenizer.pad_token = "</s>"
    return tokenizer


def _for_axolotl() -> None:
    import transformers

    own = transformers.AutoTokenizer.from_pretrained

    def from_pretrained(name: str, *args: Any, **kwargs: Any) -> Any:
        return own(_tokenizer_folder() if name == "huggyllama/llama-7b" else name, *args, **kwargs)

    transformers.AutoTokenizer.from_pretrained = from_pretrained


def _for_ms_swift() -> None:
    import swift.dataset
    import swift.model
    from datasets import Dataset

    own = swift.model.get_processor

    def get_processor(name: str, **kwargs: Any) -> Any:
        folder = _tokenizer_folder()
        with open(os.path.join(folder, "config.json"), "w") as out:
            json.dump({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}, out)
        return own(folder, **kwargs)

    def load_dataset(names: Any, **kwargs: Any) -> Any:
        texts = _texts(200, 2)
        rows = [
            [{"role": "user", "content": ask}, {"role": "assistant", "content": answer}]
            for ask, answer in zip(texts[::2], texts[1::2])
        ]
        return Dataset.from_dict({"messages": rows}), None

    swift.model.get_processor = get_processor
    swift.dataset.load_dataset = load_dataset


def pytest_configure(config: Any) -> None:
    where = str(config.rootpath)
    if where.endswith("ms-swift"):
        _for_ms_swift()
    else:
        _for_axolotl()
