"""What goes into losses, and what comes out of them."""

from typing import Any, TypeAlias

from torch import Tensor

#: Samples as tensors with one leading length B, by name; ``weight`` may be None.
Batch: TypeAlias = dict[str, Any]
#: What a network says of a batch, by name: a tensor, or one for each part of an action.
Output: TypeAlias = dict[str, Any]
#: What is to be minimised, and the priority or the absolute error of each sample ``[B]``.
Loss: TypeAlias = tuple[Tensor, Tensor]
#: What is to be minimised, the priority of each sample ``[B]``, and the loss of each critic.
CriticLoss: TypeAlias = tuple[Tensor, Tensor, list[Tensor]]
#: What is to be minimised, the errors ``[T, B]``, and what to log.
TeamLoss: TypeAlias = tuple[Tensor, Tensor, dict[str, Tensor]]
#: What is to be minimised, and what to log.
LoggedLoss: TypeAlias = tuple[Tensor, dict[str, Any]]
#: What is to be minimised, by name, and what to log besides.
Losses: TypeAlias = tuple[dict[str, Tensor], dict[str, Any]]
