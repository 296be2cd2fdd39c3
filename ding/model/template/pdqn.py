"""Q-values of choices with arguments, and a network that proposes the arguments."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.encoder import build_encoder
from ding.model.common.head import DiscreteHead, DuelingHead, RegressionHead, column
from ding.model.common.old_names import OtherNames, below, same
from ding.model.template.actor_critic import ByMode
from ding.torch_utils.network.activation import Activation
from ding.utils.default_helper import one_size
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("pdqn")
class PDQN(ByMode, OtherNames):
    """Parametrised DQN (Xiong et al. 2018) and its multi-pass form (Bester et al. 2019).

    Args:
        action_shape: ``action_type_shape``, the number N of choices, and ``action_args_shape``, the
            number A of arguments of all choices together.
        head_hidden_size: The encoders' last size unless given; plus the number of arguments, the
            width of the choices' head.
        multi_pass: Let the value of a choice depend only on its own arguments: the network is run
            once per choice, with the other arguments set to zero.
        action_mask: Which arguments belong to which choice, 0 or 1, ``[N, A]``; required with
            ``multi_pass``, unless choice i has the argument i and further choices have none.
    """

    mode = ["compute_discrete", "compute_continuous"]
    action_mask: torch.Tensor
    _other_names = {"actor_head.0": "dis_head", "actor_head.1": "cont_head"}

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: Mapping[str, Any],
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        dueling: bool = True,
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = nn.ReLU(),
        norm_type: str | None = None,
        multi_pass: bool | None = False,
        action_mask: Sequence[Sequence[int]] | None = None,
    ) -> None:
        super().__init__()
        types, args_size = _sizes(action_shape)
        options = (obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.dis_encoder = build_encoder(*options)
        self.cont_encoder = build_encoder(*options)
        feature = self.dis_encoder.output_size
        width = head_hidden_size or feature
        common: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        # In the order of parameters in optimisers of old checkpoints.
        self.cont_head = RegressionHead(
            feature, args_size, head_layer_num, final_tanh=True, hidden_size=width, **common
        )
        self.dis_head = (DuelingHead if dueling else DiscreteHead)(
            width + args_size,
            types,
            head_layer_num,
            input_size=feature + args_size,
            **common,
        )
        self.multi_pass = bool(multi_pass)
        mask = _mask(action_mask, types, args_size, self.multi_pass)
        self.register_buffer("action_mask", mask, persistent=False)

    def from_old_form(self, state: dict[str, Any], prefix: str, errors: list[str]) -> None:
        """In old checkpoints both networks use ``cont_encoder``, also saved as ``encoder.0`` and
        ``encoder.1``; their ``dis_encoder`` is saved, but unused."""
        super().from_old_form(state, prefix, errors)
        for name in below(state, f"{prefix}encoder.0."):
            first, second = (state.pop(f"{prefix}encoder.{i}.{name}", None) for i in (0, 1))
            own = state.setdefault(f"{prefix}cont_encoder.{name}", second)
            if same(first, second):
                state[f"{prefix}dis_encoder.{name}"] = first
            else:
                errors.append(f"{prefix}encoder.0.{name} and encoder.1.{name} hold other values")
            if not same(second, own):
                errors.append(
                    f"{prefix}encoder.1.{name} and {prefix}cont_encoder.{name} are one parameter, "
                    "but hold other values"
                )

    def compute_continuous(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'action_args': [B, A]}`` in (-1, 1), for all choices."""
        feature = self.cont_encoder(inputs)
        pred = self.cont_head(feature)["pred"]
        return {"action_args": column(pred, feature)}

    def compute_discrete(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """``{'logit': [B, N], 'action_args': [B, A]}``: the value of each choice.

        Args:
            inputs: ``state``, observations, and ``action_args`` ``[B, A]``, which are returned.
        """
        feature = self.dis_encoder(inputs["state"])
        action_args = column(inputs["action_args"], feature)
        if not self.multi_pass:
            logit = self.dis_head(torch.cat([feature, action_args], dim=-1))["logit"]
            return {"logit": logit, "action_args": action_args}
        # One pass per choice, [B, N, feature + A]; only the choice's own value is used.
        own = action_args.unsqueeze(-2) * self.action_mask
        features = feature.unsqueeze(-2).expand(*own.shape[:-1], -1)
        logit = self.dis_head(torch.cat([features, own], dim=-1))["logit"]
        return {"logit": logit.diagonal(dim1=-2, dim2=-1), "action_args": action_args}


def _sizes(action_shape: Any) -> tuple[int, int]:
    keys = ("action_type_shape", "action_args_shape")
    if not isinstance(action_shape, Mapping) or any(key not in action_shape for key in keys):
        raise ConfigError(
            f"PDQN: action_shape is {action_shape!r}; expected a mapping of action_type_shape and "
            "action_args_shape"
        )
    types, args = (
        one_size(action_shape[key], f"PDQN: action_shape.{key}", meaning)
        for key, meaning in zip(keys, ("the number of choices", "the number of arguments"))
    )
    return types, args


def _mask(given: Any, types: int, args: int, needed: bool) -> torch.Tensor:
    if given is None:
        if needed and args > types:
            raise ConfigError(
                f"PDQN: multi_pass with {args} arguments of {types} choices needs action_mask, "
                "which arguments belong to which choice"
            )
        return torch.eye(types, args)
    mask = torch.as_tensor(given, dtype=torch.float32)
    if mask.shape != (types, args) or not bool(((mask == 0) | (mask == 1)).all()):
        raise ConfigError(
            f"PDQN: action_mask is {given!r}; expected 0 or 1 for each of {types} choices and "
            f"{args} arguments, [{types}, {args}]"
        )
    return mask
