"""Numbers, names and texts passed to C: ctypes cuts an integer that does not fit, so it is checked
first."""

import ctypes
import functools
import operator
from typing import Any, Callable, Iterable, List, Mapping, Optional, Type, TypeVar, cast

import numpy as np

INTEGER_BITS = {
    ctypes.c_int32: (32, True),
    ctypes.c_uint32: (32, False),
    ctypes.c_int64: (64, True),
    ctypes.c_uint64: (64, False),
}


def checked(name: str, value: Any, ctype: Type[Any]) -> int:
    """`value` as an int of `ctype`; numpy integers and bool are integers too. OverflowError names what does
    not fit."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an integer{_meant(value)}") from None
    bits, signed = INTEGER_BITS[ctype]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise OverflowError(f"{name} is {number}; it must be in {low}..{high}")
    return number


_POWERS = {"K": 10, "M": 20, "G": 30}


def _meant(value: Any) -> str:
    """Of a text such as "128K", which the command reads: the number."""
    digits, unit = (value[:-1], value[-1:]) if isinstance(value, str) else ("", "")
    known = unit in _POWERS and digits.isascii() and digits.isdigit() and len(digits) < 9
    return f", such as {int(digits) << _POWERS[unit]}" if known else ""


def int32(name: str, value: Any) -> int:
    return checked(name, value, ctypes.c_int32)


def int64(name: str, value: Any) -> int:
    return checked(name, value, ctypes.c_int64)


def flag(name: str, value: Any) -> bool:
    """`value` as a bool: True, False or numpy's, 0 or 1, and None for False."""
    if isinstance(value, (bool, np.bool_)) or value is None:
        return bool(value)
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number not in (0, 1):
        raise TypeError(f"{name} is {value!r}; it must be True or False")
    return number == 1


def fields_text(fields: Mapping[str, Any]) -> str:
    """Fields as the library reads them from a text, "cores=96.0,hbm_bytes=80GiB": numbers, or texts with a unit."""
    return ",".join(f"{name}={value if isinstance(value, str) else repr(float(value))}" for name, value in fields.items())


def choice(name: str, value: Any, choices: Mapping[Any, int]) -> int:
    """The C constant that `value` names; "-" and "_" are the same."""
    for spelling in (
        (value, value.replace("_", "-"), value.replace("-", "_")) if isinstance(value, str) else (value,)
    ):
        try:
            return choices[spelling]
        except (KeyError, TypeError):
            continue
    raise ValueError(f"{name} is {not_among(value, choices, '; it must be one of ')}")


# What trainers call options, and what they are here, the first that a function has.
TRAINERS_WORDS = {
    "batch_size": ("samples_per_step", "max_samples"),
    "global_batch_size": ("samples_per_step",),
    "train_batch_size": ("samples_per_step",),
    "max_tokens": ("capacity", "max_length"),
    "max_tokens_per_gpu": ("tokens_per_rank", "capacity"),
    "max_token_len": ("capacity", "max_length"),
    "max_seq_len": ("max_length", "capacity"),
    "max_seq_length": ("max_length", "capacity"),
    "seq_length": ("max_length", "capacity"),
    "sequence_len": ("max_length", "capacity"),
    "cutoff_len": ("max_length", "capacity"),
    "num_partitions": ("parts",),
    "k_partitions": ("parts",),
    "num_bins": ("parts",),
}


def not_among(value: Any, known: Iterable[Any], there_are: str = "; there are ") -> str:
    """What a message says of a name that is not `known`: the one that was meant, and all there are."""
    import difflib  # takes a millisecond that only a failure pays

    texts = [str(name) for name in known]
    close: List[str] = []
    if isinstance(value, str):
        close = [name for name in TRAINERS_WORDS.get(value, ()) if name in texts]
        close = close or difflib.get_close_matches(value, texts, 1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    return f"{value!r}{meant}{there_are}{', '.join(map(repr, known))}"


def refuse_unknown(
    options: Mapping[str, Any], keywords: Any, others: Mapping[str, Callable[..., Any]]
) -> None:
    """TypeError for an option that the TypedDict `keywords` does not have; `others`: calls by
    name whose option it may be."""
    unknown = next((name for name in options if name not in keywords.__annotations__), None)
    if unknown is None:
        return
    import inspect  # which only a failure pays

    for other, call in others.items():
        if unknown in inspect.signature(call).parameters:
            raise TypeError(f"there is no option {unknown!r} here; it is one of {other}")
    raise TypeError(f"there is no option {not_among(unknown, keywords.__annotations__)}")


F = TypeVar("F", bound=Callable[..., Any])


def suggesting(function: F) -> F:
    """`function`, which answers a keyword that it does not have with the one that was meant."""

    @functools.wraps(function)
    def answering(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            code = function.__code__
            known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            unknown = [name for name in keywords if name not in known]
            if inside or not unknown:
                raise
        options = [name for name in known if name not in ("self", "cls")]
        raise TypeError(f"there is no option {not_among(unknown[0], options)}")

    return cast(F, answering)


def list_names(function: Callable[[int], Optional[bytes]]) -> List[str]:
    """The names that a function of the library has for 0, 1, ..., up to the first that has none."""
    names: List[str] = []
    while True:
        name = function(len(names))
        if name is None:
            return names
        names.append(name.decode())


def text_bytes(text: Optional[str]) -> Optional[bytes]:
    """A text as C wants it; None stays None."""
    if text is not None and not isinstance(text, str):
        raise TypeError(f"a text is {text!r}; it must be a str")
    if text is not None and "\0" in text:
        raise ValueError(f"text {text!r} holds a NUL byte")
    return None if text is None else text.encode()


