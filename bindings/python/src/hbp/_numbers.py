"""Numbers and names on their way into C: ctypes cuts an integer that does not fit, so it is checked first."""

import ctypes
import operator
from typing import Any, Dict, Iterable, Mapping, Type

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
        raise TypeError(f"{name} is {value!r}; it must be an integer") from None
    bits, signed = INTEGER_BITS[ctype]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise OverflowError(f"{name} is {number}; it must be in {low}..{high}")
    return number


def int32(name: str, value: Any) -> int:
    return checked(name, value, ctypes.c_int32)


def int64(name: str, value: Any) -> int:
    return checked(name, value, ctypes.c_int64)


def fields_text(fields: Mapping[str, Any]) -> str:
    """Fields as the library reads them from a text, "cores=96.0,hbm_bytes=8e+10"."""
    return ",".join(f"{name}={float(value)!r}" for name, value in fields.items())


def choice(name: str, value: Any, choices: Mapping[Any, int]) -> int:
    """The C constant that `value` names; "-" and "_" are the same."""
    for spelling in (
        (value, value.replace("_", "-"), value.replace("-", "_")) if isinstance(value, str) else (value,)
    ):
        try:
            return choices[spelling]
        except (KeyError, TypeError):
            continue
    known = ", ".join(repr(known) for known in choices)
    raise ValueError(f"{name} is {value!r}; it must be one of {known}")


def option_values(
    keywords: Any, options: Mapping[str, Any], choices: Mapping[str, Mapping[str, int]], flags: Iterable[str]
) -> Dict[str, Any]:
    """The struct fields that `options` set: names that `choices` has as their constants, `flags` as bool. What
    is not among the TypedDict `keywords` is a TypeError. What is left out stays 0, the default of each."""
    values = dict(options)
    for name in values:
        if name not in keywords.__annotations__:
            raise TypeError(f"there is no option {name!r}; there are {', '.join(keywords.__annotations__)}")
    for name in choices.keys() & values.keys():
        values[name] = choice(name, values[name], choices[name])
    for name in values.keys() & set(flags):
        values[name] = bool(values[name])
    return values
