"""What a sweep tries: the YAML file, checked, and values for a trial."""

import difflib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from ding.config.read import parse_yaml
from ding.utils.errors import ConfigError

if TYPE_CHECKING:
    import optuna

#: A key's value, as YAML and JSON have it.
Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
#: What an entry may hold; a dict without any of them is a section of the config.
_WORDS = ("low", "high", "log", "step", "choices", "when")
#: Keys that the sweep sets, and the option to use.
_OWN = {"seed": "-s, for example -s 0-2", "exp_name": "--folder"}


@dataclass(frozen=True)
class Entry:
    """What may be tried for one key of the config.

    Attributes:
        choices: Values, of which one is tried; empty for a range.
        low, high: The range, both ends included; whole if both are.
        log: Whether the logarithm is uniform in the range.
        step: Distance of neighbouring values, ``None`` for any value.
        when: The entry counts only if each of these keys has one of these values.
    """

    choices: tuple[Value, ...] = ()
    low: float = 0
    high: float = 0
    log: bool = False
    step: float | None = None
    when: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def distribution(self) -> "optuna.distributions.BaseDistribution":
        from optuna import distributions

        if self.choices:
            # Lists and dicts are no values to Optuna: their text is.
            return distributions.CategoricalDistribution([json.dumps(one) for one in self.choices])
        if self.is_whole:
            low, high, step = int(self.low), int(self.high), int(self.step or 1)
            return distributions.IntDistribution(low, high, self.log, step)
        return distributions.FloatDistribution(self.low, self.high, self.log, self.step)

    def suggest(self, trial: "optuna.trial.Trial", key: str) -> Value:
        if self.choices:
            names = [json.dumps(value) for value in self.choices]
            return json.loads(trial.suggest_categorical(key, names))
        if self.is_whole:
            low, high, step = int(self.low), int(self.high), int(self.step or 1)
            return trial.suggest_int(key, low, high, log=self.log, step=step)
        return trial.suggest_float(key, self.low, self.high, log=self.log, step=self.step)

    def stored(self, value: Value) -> Value:
        """A value as Optuna stores it."""
        return json.dumps(value) if self.choices else value

    def value(self, stored: Value) -> Value:
        """A value that Optuna has stored."""
        return json.loads(str(stored)) if self.choices else stored

    def ends(self) -> tuple[Value, ...]:
        """All choices, or the ends of the range."""
        return self.choices or (self.low, self.high)

    def grid(self) -> tuple[Value, ...]:
        """All values; empty if there are any number of them."""
        if self.choices:
            return self.choices
        step = self.step if self.step is not None else 1 if self.is_whole and not self.log else 0
        if not step:
            return ()
        count = int((self.high - self.low) / step + 1e-9)
        return tuple(self.low + step * i for i in range(count + 1))


class Space(dict[str, Entry]):
    """Entries by their path in the config; a key follows those that its ``when`` names.

    Attributes:
        source: The YAML file's content, as JSON can store it.
    """

    def __init__(self, source: object, path: str) -> None:
        """
        Args:
            path: Of the file, for errors.

        Raises:
            ConfigError: The space is wrong; names the entry, what is wrong, and how to write it.
        """
        if not isinstance(source, dict) or not source:
            raise ConfigError(f"{path} must map paths such as policy.nstep to values to try")
        entries: dict[str, Entry] = {}
        for key, entry in _flat(source, "", path):
            if key in entries:
                raise ConfigError(f"{path}: {key} is given twice")
            if key in _OWN:
                raise ConfigError(f"{path}: {key} cannot be swept; it is set by {_OWN[key]}")
            entries[key] = entry
        for key, entry in entries.items():
            for other, values in entry.when.items():
                _check_condition(f"{path}: {key}: when", entries, other, values)
        super().__init__(_ordered(entries, path))
        self.source = source

    def is_active(self, key: str, values: Mapping[str, Value]) -> bool:
        """Whether an entry counts, given the values of those before it."""
        return all(
            other in values and values[other] in wanted for other, wanted in self[key].when.items()
        )

    def suggest(self, trial: "optuna.trial.Trial") -> dict[str, Value]:
        """A value for each entry that counts."""
        values: dict[str, Value] = {}
        for key, entry in self.items():
            if self.is_active(key, values):
                values[key] = entry.suggest(trial, key)
        return values

    def examples(self) -> Iterator[dict[str, Value]]:
        """Values with which each choice and each end of a range occurs at least once."""
        open_values = {key: list(entry.ends()) for key, entry in self.items()}
        while any(open_values.values()):
            wanted = next(key for key, values in reversed(open_values.items()) if values)
            values: dict[str, Value] = {}
            self._require(wanted, open_values[wanted][0], values)
            chosen: dict[str, Value] = {}
            for key, entry in self.items():
                if self.is_active(key, chosen):
                    left = open_values[key]
                    chosen[key] = values.get(key, left[0] if left else entry.ends()[0])
                    if chosen[key] in left:
                        left.remove(chosen[key])
            if wanted not in chosen:  # conditions that exclude each other
                raise ConfigError(f"{wanted}: no values meet its when and those of its conditions")
            yield chosen

    def _require(self, key: str, value: Value, values: dict[str, Value]) -> None:
        values.setdefault(key, value)
        for other, wanted in self[key].when.items():
            self._require(other, wanted[0], values)

    def grid(self) -> Iterator[dict[str, Value]]:
        """All combinations, in the order of the file.

        Raises:
            ConfigError: A range has any number of values.
        """
        for key, entry in self.items():
            if not entry.grid():
                raise ConfigError(f"{key}: a grid needs a list of values, or a step in the range")
        seen = set()
        for combination in itertools.product(*(entry.grid() for entry in self.values())):
            values: dict[str, Value] = {}
            for key, value in zip(self, combination, strict=True):
                if self.is_active(key, values):
                    values[key] = value
            if (text := json.dumps(values)) not in seen:
                seen.add(text)
                yield values


def read_space(path: str) -> Space:
    """A sweep's YAML file.

    Raises:
        ConfigError: The file cannot be read, or is wrong; names the entry.
    """
    try:
        with open(path, encoding="utf-8") as file:
            source = parse_yaml(file.read())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return Space(source, path)


def _flat(source: Mapping[str, object], before: str, path: str) -> Iterator[tuple[str, Entry]]:
    """Entries of a section and of those in it, by their whole path."""
    for name, value in source.items():
        key = f"{before}{name}"
        if isinstance(value, dict) and value and not value.keys() & set(_WORDS):
            yield from _flat(value, f"{key}.", path)
        else:
            yield key, _entry(value, f"{path}: {key}")


def _entry(value: object, where: str) -> Entry:
    if isinstance(value, list):
        value = {"choices": value}
    if not isinstance(value, dict) or not value:
        raise ConfigError(
            f"{where} is {value!r}, expected a list of values such as [32, 64], or a range such as "
            "{low: 1e-5, high: 1e-2, log: true}"
        )
    for word in value.keys() - set(_WORDS):
        raise ConfigError(f"{where}: unknown word {word!r}{_hint(word, _WORDS)}")
    when = value.get("when", {})
    if not isinstance(when, dict):
        raise ConfigError(f"{where}: when is {when!r}, expected such as {{policy.priority: true}}")
    conditions = {
        str(other): tuple(wanted) if isinstance(wanted, list) else (wanted,)
        for other, wanted in when.items()
    }
    if "choices" in value:
        choices = value["choices"]
        if not isinstance(choices, list) or not choices:
            raise ConfigError(f"{where}: choices is {choices!r}, expected a list of values")
        if extra := value.keys() - {"choices", "when"}:
            raise ConfigError(f"{where}: choices and {sorted(extra)[0]} exclude each other")
        return Entry(choices=tuple(choices), when=conditions)
    return _range(value, conditions, where)


def _range(value: Mapping[str, Any], when: Mapping[str, tuple[Value, ...]], where: str) -> Entry:
    for word in ("low", "high"):
        if word not in value:
            raise ConfigError(f"{where}: {word} is missing, expected low and high, or a list")
    low, high, step = value["low"], value["high"], value.get("step")
    log = value.get("log", False)
    numbers = {"low": low, "high": high} | ({} if step is None else {"step": step})
    for word, number in numbers.items():
        if type(number) not in (int, float) or not math.isfinite(number):
            raise ConfigError(f"{where}: {word} must be a number, got {number!r}")
    if not isinstance(log, bool):
        raise ConfigError(f"{where}: log must be true or false, got {log!r}")
    if not low < high:
        raise ConfigError(f"{where}: low must be below high, got {low!r} and {high!r}")
    if log and low <= 0:
        small = 1 if type(low) is type(high) is int else 1e-6
        raise ConfigError(
            f"{where}: log: true needs a low above 0, got {low!r}; write such as low: {small!r}, "
            "or leave log out"
        )
    if log and step is not None:
        raise ConfigError(f"{where}: log: true and step exclude each other; leave one out")
    if step is not None and not 0 < step <= high - low:
        raise ConfigError(f"{where}: step must be above 0 and at most high - low, got {step!r}")
    if isinstance(step, float):
        low, high = float(low), float(high)
    return Entry(low=low, high=high, log=log, step=step, when=when)


def _check_condition(
    where: str, entries: Mapping[str, Entry], key: str, values: Sequence[Value]
) -> None:
    if key not in entries:
        raise ConfigError(f"{where}: {key} is not in this file{_hint(key, entries)}")
    choices = entries[key].choices
    if not choices:
        raise ConfigError(f"{where}: {key} is a range; a condition needs a list of values")
    for value in values:
        if value not in choices:
            raise ConfigError(f"{where}: {key} is never {value!r}, only one of {list(choices)!r}")


def _ordered(entries: Mapping[str, Entry], path: str) -> dict[str, Entry]:
    """Each entry after those that its conditions name, else in the order of the file."""
    ordered: dict[str, Entry] = {}
    while len(ordered) < len(entries):
        ready = [
            key
            for key, entry in entries.items()
            if key not in ordered and entry.when.keys() <= ordered.keys()
        ]
        if not ready:
            circle = ", ".join(key for key in entries if key not in ordered)
            raise ConfigError(f"{path}: the conditions (when) of {circle} form a circle")
        ordered |= {key: entries[key] for key in ready}
    return ordered


def _hint(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(word), list(known), 1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"
