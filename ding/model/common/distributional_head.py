"""Heads that predict the distribution of each action's return, not only its mean."""

import math
from typing import Any

import torch
from torch import nn

from ding.model.common.head import head_mlp
from ding.model.common.old_names import TwoForms


class _AtomHead(nn.Module):
    """``{'logit': [B, N], 'distribution': [B, N, n_atom]}`` from scores of the atoms.

    ``distribution`` contains probabilities of ``n_atom`` returns from ``v_min`` to ``v_max``,
    ``logit`` their mean.
    """

    support: torch.Tensor

    def __init__(self, n_atom: int, v_min: float, v_max: float) -> None:
        super().__init__()
        self.n_atom = n_atom
        # Not in checkpoints, since the config determines it.
        self.register_buffer("support", torch.linspace(v_min, v_max, n_atom), persistent=False)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        distribution = self.atom_scores(x).softmax(-1)
        return {"logit": distribution @ self.support, "distribution": distribution}

    def atom_scores(self, x: torch.Tensor) -> torch.Tensor:
        """``[B, input_size]`` to ``[B, N, n_atom]``."""
        raise NotImplementedError


class DistributionHead(_AtomHead):
    """Probabilities over fixed returns (Bellemare et al. 2017, C51).

    Args:
        layers: Further arguments of `head_mlp`, as for all heads here.
    """

    def __init__(
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        n_atom: int = 51,
        v_min: float = -10,
        v_max: float = 10,
        **layers: Any,
    ) -> None:
        super().__init__(n_atom, v_min, v_max)
        self.Q = head_mlp(hidden_size, output_size * n_atom, layer_num, **layers)

    def atom_scores(self, x: torch.Tensor) -> torch.Tensor:
        return self.Q(x).unflatten(-1, (-1, self.n_atom))


class RainbowHead(_AtomHead):
    """As `DistributionHead`, with dueling branches and noisy layers (Hessel et al. 2018)."""

    def __init__(
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        n_atom: int = 51,
        v_min: float = -10,
        v_max: float = 10,
        noise: bool = True,
        **layers: Any,
    ) -> None:
        super().__init__(n_atom, v_min, v_max)
        self.A = head_mlp(hidden_size, output_size * n_atom, layer_num, noise=noise, **layers)
        # The state's value; the name is that of old checkpoints.
        self.Q = head_mlp(hidden_size, n_atom, layer_num, noise=noise, **layers)

    def atom_scores(self, x: torch.Tensor) -> torch.Tensor:
        advantage = self.A(x).unflatten(-1, (-1, self.n_atom))
        return advantage + (self.Q(x).unsqueeze(-2) - advantage.mean(-2, keepdim=True))


class QuantileHead(nn.Module):
    """Quantiles of the return (Dabney et al. 2018, QR-DQN).

    ``[B, input_size]`` to ``{'logit': [B, N], 'q': [B, N, Q], 'tau': [B, Q, 1]}``: ``q`` are the
    returns at the ``Q`` midpoints ``tau`` of equal shares of probability, ``logit`` their mean.
    """

    tau: torch.Tensor

    def __init__(
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        num_quantiles: int = 32,
        **layers: Any,
    ) -> None:
        super().__init__()
        self.num_quantiles = num_quantiles
        self.Q = head_mlp(hidden_size, output_size * num_quantiles, layer_num, **layers)
        tau = (torch.arange(num_quantiles) + 0.5) / num_quantiles
        self.register_buffer("tau", tau.unsqueeze(-1), persistent=False)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        q = self.Q(x).unflatten(-1, (-1, self.num_quantiles))
        tau = self.tau.expand(*q.shape[:-2], -1, -1)
        return {"logit": q.mean(-1), "q": q, "tau": tau}


class ImplicitQuantileHead(TwoForms):
    """Quantiles of the return at arbitrary fractions (Dabney et al. 2018, IQN).

    ``[B, input_size]`` to ``{'logit': [B, N], 'q': [B, N, Q], 'tau': [B, Q, 1]}``: ``q`` are the
    returns at ``tau``, ``logit`` their mean. In training mode ``tau`` is drawn
    uniformly and independently for each row; otherwise it is the midpoints of equal shares, so that
    the output is deterministic.

    The embedding is cos(π i τ) with the multiples i in ``frequencies``: 0 to n - 1 (the paper's
    equation 4), in old checkpoints 1 to n.
    """

    frequencies: torch.Tensor
    _form = "frequencies"

    def __init__(
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        num_quantiles: int = 32,
        quantile_embedding_size: int = 128,
        **layers: Any,
    ) -> None:
        super().__init__()
        self.num_quantiles = num_quantiles
        self.Q = head_mlp(hidden_size, output_size, layer_num, **layers)
        self.iqn_fc = nn.Linear(quantile_embedding_size, layers.get("input_size") or hidden_size)
        frequencies = torch.arange(self.iqn_fc.in_features) * math.pi
        self.register_buffer("frequencies", frequencies)

    def old_form(self) -> torch.Tensor:
        return torch.arange(1, self.iqn_fc.in_features + 1) * math.pi

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        tau = self._tau(x)
        embedding = torch.cos(tau * self.frequencies)
        feature = x.unsqueeze(-2) * self.iqn_fc(embedding).relu_()  # [B, Q, input_size]
        q = self.Q(feature).transpose(-1, -2)
        return {"logit": q.mean(-1), "q": q, "tau": tau.expand(*x.shape[:-1], -1, -1)}

    def _tau(self, x: torch.Tensor) -> torch.Tensor:
        """``[B, Q, 1]``, or ``[Q, 1]`` if all rows have the same fractions."""
        if self.training:
            return torch.rand(*x.shape[:-1], self.num_quantiles, 1, device=x.device, dtype=x.dtype)
        middle = (torch.arange(self.num_quantiles, device=x.device) + 0.5) / self.num_quantiles
        return middle.to(x.dtype).unsqueeze(-1)


class FractionProposalHead(nn.Module):
    """Quantiles of the return at learned fractions (Yang et al. 2019, FQF).

    ``[B, input_size]`` to ``logit`` ``[B, N]``, the means; ``q`` ``[B, N, Q]``, the returns at the
    midpoints ``tau`` ``[B, Q, 1]`` of the proposed intervals; ``fractions`` ``[B, Q + 1]``, the
    intervals' bounds, from 0 to 1; the ``entropy`` ``[B]`` of their widths; and, if gradients are
    enabled, ``q_fractions`` ``[B, N, Q - 1]``, the returns at the inner fractions.

    Gradients of ``fractions`` and ``entropy`` only reach ``quantiles_proposal``; those of the other
    outputs do not reach it.
    """

    sigma_pi: torch.Tensor

    def __init__(
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        num_quantiles: int = 32,
        quantile_embedding_size: int = 128,
        **layers: Any,
    ) -> None:
        super().__init__()
        self.Q = head_mlp(hidden_size, output_size, layer_num, **layers)
        width = layers.get("input_size") or hidden_size
        self.fqf_fc = nn.Sequential(nn.Linear(quantile_embedding_size, width), nn.ReLU())
        proposal = nn.Linear(width, num_quantiles)
        # All intervals are nearly equal at first.
        nn.init.xavier_uniform_(proposal.weight, gain=0.01)
        nn.init.zeros_(proposal.bias)
        self.quantiles_proposal = nn.Sequential(proposal)
        # Saved in checkpoints, since others number the cosines differently.
        frequencies = torch.arange(quantile_embedding_size) * math.pi
        self.register_buffer("sigma_pi", frequencies.view(1, 1, -1))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        log_share = self.quantiles_proposal(x.detach()).log_softmax(-1)
        share = log_share.exp()
        ends = share.cumsum(-1).clamp(max=1.0)
        fractions = torch.cat([torch.zeros_like(ends[..., :1]), ends], -1)
        tau = ((fractions[..., 1:] + fractions[..., :-1]) / 2).detach()
        q = self._quantiles(x, tau)
        output = {
            "logit": (q * share.detach().unsqueeze(-2)).sum(-1),
            "q": q,
            "tau": tau.unsqueeze(-1),
            "fractions": fractions,
            "entropy": -(share * log_share).sum(-1),
        }
        if torch.is_grad_enabled():
            with torch.no_grad():
                output["q_fractions"] = self._quantiles(x, fractions[..., 1:-1])
        return output

    def _quantiles(self, x: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
        """``[B, N, Q]`` at the fractions ``[B, Q]``."""
        embedding = self.fqf_fc(torch.cos(tau.unsqueeze(-1) * self.sigma_pi))
        return self.Q(x.unsqueeze(-2) * embedding).transpose(-1, -2)
