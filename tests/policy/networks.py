"""Networks whose outputs are known numbers."""

import math
from collections.abc import Sequence

import torch
from torch import nn

#: Two critics ``Q = c s + d a``.
TWO_CRITICS = ((1.0, 2.0), (1.0, 1.0))


class Table(nn.Module):
    """Q-values by state, a whole number: ``[B, 1]`` to those of the table's row."""

    def __init__(self, table: list):
        super().__init__()
        self.table = nn.Parameter(torch.tensor(table))

    def forward(self, x):
        return {"logit": self.table[x[:, 0].long()]}


class TableQuantiles(Table):
    """Two quantiles of the return, by state and action."""

    def forward(self, x):
        q = self.table[x[:, 0].long()]
        tau = torch.tensor([[0.25], [0.75]]).expand(len(x), -1, -1)
        return {"logit": q.mean(-1), "q": q, "tau": tau}


class FixedActorCritic(nn.Module):
    """Probabilities 1/4 and 3/4 or others; the value is the first number of the observation."""

    def __init__(self, logit: Sequence[float] = (0.0, math.log(3))):
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(logit))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x, mode=""):
        output = {"logit": self.logit.expand(len(x), 2)}
        return {**output, "value": x[:, 0] * self.scale} if mode else output


class Linear(nn.Module):
    """Actor ``a = w s`` (and sigma), critics ``Q = c s + d a``, value ``V = v s``; all numbers."""

    def __init__(self, actor=0.5, critics=((1.0, 2.0),), sigma=None, value=None):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(actor))
        self.c = nn.Parameter(torch.tensor(critics))
        self.sigma = sigma
        self.actor, self.critic = nn.ParameterList([self.w]), nn.ParameterList([self.c])
        if value is not None:
            self.v = nn.Parameter(torch.tensor(value))
            self.critic.append(self.v)

    def forward(self, inputs, mode):
        if mode == "compute_actor":
            mean = self.w * inputs
            if self.sigma is None:
                return {"action": mean}
            return {"logit": [mean, torch.full_like(mean, self.sigma)]}
        if mode == "compute_value":
            return {"v_value": self.v * inputs[:, 0]}
        obs, action = inputs["obs"][:, 0], inputs["action"][:, 0]
        q_value = [c[0] * obs + c[1] * action for c in self.c]
        return {"q_value": q_value if len(q_value) > 1 else q_value[0]}
