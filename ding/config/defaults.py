"""What can be set in a config, and what it is if nobody sets it."""

import inspect
from collections.abc import Mapping
from typing import Any, cast

from easydict import EasyDict

from ding.config.check import at
from ding.config.known_keys import COMMANDER_KEYS, ENV_KEYS, EPS_KEYS, POLICY_KEYS, TOP_KEYS
from ding.config.parts import Parts, default_config, import_names, is_ours
from ding.utils import MODEL_REGISTRY, deep_merge_dicts, import_module
from ding.utils.errors import ConfigError
from ding.worker import BaseSerialCommander

_POLICY_SECTIONS = ("learn", "collect", "eval", "other")


def defaults_of(parts: Parts, create: Mapping[str, Any]) -> EasyDict:
    """Everything that a run of these parts can be told, with its default.

    Of two values for a key, the later of these wins: a component's own default, the policy's or
    the env's for it, ``create``.
    """
    policy = deep_merge_dicts({name: {} for name in _POLICY_SECTIONS}, default_config(parts.policy))
    cfg = EasyDict(env=default_config(parts.env), policy=policy)
    for name, (_, place) in parts.components.items():
        part, settings = getattr(parts, name), create.get(name, {})
        if not place or (part is None and not settings):
            continue
        own = at(cfg, place) or {}
        layers = (own,) if name in ("env", "policy") else (default_config(part), own)
        _put(cfg, place, layered(*layers, settings))
    if not parts.parallel:
        commander = at(cfg, "policy.other.commander") or {}
        cfg.policy.other.commander = layered(
            default_config(BaseSerialCommander), commander, create.get("commander", {})
        )
    return cfg


def layered(*layers: Mapping[str, Any]) -> EasyDict:
    """All layers merged, later over earlier."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = deep_merge_dicts(merged, dict(layer))
    return EasyDict(merged)


def _put(cfg: EasyDict, place: str, section: EasyDict) -> None:
    *way, last = place.split(".")
    for key in way:
        cfg = cfg.setdefault(key, EasyDict())
    cfg[last] = section


def known_keys(defaults: Mapping[str, Any], model_cls: Any) -> dict[str, Any]:
    """Every key that a main config may hold, with an example of its value."""
    known = deep_merge_dicts(dict(defaults), {**TOP_KEYS, "env": ENV_KEYS, "policy": POLICY_KEYS})
    known["policy"]["model"] = {
        **known["policy"]["model"],
        **{
            name: None if parameter.default is inspect.Parameter.empty else parameter.default
            for name, parameter in _parameters(model_cls).items()
        },
        "type": "",
        "import_names": [],
    }
    known["policy"]["other"]["commander"].update(COMMANDER_KEYS)
    other = known["policy"]["other"]
    if "eps" in other:
        other["eps"].update(EPS_KEYS)
    if "replay_buffer" not in defaults["policy"]["other"]:
        del other["replay_buffer"]  # nothing is replayed
    return known


def open_paths(parts: Parts, model_cls: Any) -> set[str]:
    """Sections of which not all keys can be known: those of classes from elsewhere."""
    paths = {"policy.learn.learner.hook"}
    for name, (_, place) in parts.components.items():
        if place and not is_ours(getattr(parts, name)):
            paths.add(place)
    if not is_ours(parts.policy):
        paths |= {f"policy.{name}" for name in (*_POLICY_SECTIONS, "other.eps")}
    kinds = {parameter.kind for parameter in _parameters(model_cls).values()}
    if model_cls is None or inspect.Parameter.VAR_KEYWORD in kinds:
        paths.add("policy.model")
    return paths


def required_model_keys(model_cls: Any) -> list[str]:
    """Arguments that a model has no default for."""
    return [
        name
        for name, parameter in _parameters(model_cls).items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]


def model_class(parts: Parts, user: Mapping[str, Any]) -> Any:
    """What makes the network of a policy; ``None`` if that cannot be known beforehand."""
    own = at(user, "policy.model")
    if isinstance(own, Mapping) and own.get("type"):
        import_names(own.get("import_names", []), "policy.model.import_names")
        return MODEL_REGISTRY.get(own["type"])
    default_model = getattr(parts.policy, "default_model", None)
    # A method of somebody else's policy may need the policy.
    if default_model is None or not default_model.__module__.startswith("ding."):
        return None
    # It may depend on what the config says, and on nothing else of a policy that is not there yet.
    unbuilt: Any = object.__new__(cast(type, parts.policy))
    written = at(user, "policy") or {}
    unbuilt._cfg = EasyDict(deep_merge_dicts(default_config(parts.policy), EasyDict(written)))
    try:
        name, modules = unbuilt.default_model()
    except ConfigError:  # it has none
        return None
    import_module(modules)
    return MODEL_REGISTRY.get(name)


def _parameters(model_cls: Any) -> Mapping[str, inspect.Parameter]:
    return {} if model_cls is None else inspect.signature(model_cls).parameters
