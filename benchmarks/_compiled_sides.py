"""Updates written by hand for ``gpu.py``: each is one function, compiled if that is asked for.

The batch is drawn on the device, nothing is read from there, and on a GPU each update is captured
as a CUDA graph, as LeanRL's scripts do. Networks and batch sizes are those of
``_policy_sides.py``; samples are random.
"""

import copy
import itertools
from collections.abc import Callable

import torch
from _policy_sides import EPOCHS, FILL, ROLLOUT, SETTINGS, Act
from torch import Tensor, nn
from torch.nn import functional as F

OBS, ACTIONS = 17, 6
GAMMA, TAU = 0.99, 0.005
#: Learns from the samples at these places, `[B]` int64.
Update = Callable[[Tensor], None]


def build(name: str, device: str, compiled: bool) -> Act:
    """The updates of ``dqn``, ``ppo``, ``sac`` or ``td3``, without or with compiling."""
    torch.manual_seed(0)
    hidden, batch_size, _ = SETTINGS[name]
    updates = UPDATES[name](hidden, device)
    if compiled:
        updates = [torch.compile(update) for update in updates]
        if device == "cuda":
            updates = [_captured(update, batch_size) for update in updates]
    in_turn = itertools.cycle(updates)

    def act() -> int:
        next(in_turn)(torch.randint(FILL, (batch_size,), device=device))
        return 1

    def act_on_policy() -> int:
        for _ in range(EPOCHS):
            for index in torch.randperm(ROLLOUT, device=device).split(batch_size):
                next(in_turn)(index)
        return EPOCHS * ROLLOUT // batch_size

    return act_on_policy if name == "ppo" else act


def _captured(update: Update, batch_size: int) -> Update:
    """`update` as one CUDA graph, by the recipe of torch's documentation."""
    index = torch.zeros(batch_size, dtype=torch.long, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            update(index)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update(index)

    def replay(new_index: Tensor) -> None:
        index.copy_(new_index)
        graph.replay()

    return replay


def _network(sizes: list[int], device: str) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(device)


def _adam(device: str, *networks: nn.Module) -> torch.optim.Adam:
    parameters = [parameter for network in networks for parameter in network.parameters()]
    return torch.optim.Adam(parameters, lr=3e-4, fused=True, capturable=device == "cuda")


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _follow(target: nn.Module, network: nn.Module) -> None:
    with torch.no_grad():
        torch._foreach_lerp_([*target.parameters()], [*network.parameters()], TAU)


class _Samples:
    """`size` random transitions on the device."""

    def __init__(self, size: int, obs: int, device: str) -> None:
        self.obs, self.next_obs = (torch.randn(size, obs, device=device) for _ in range(2))
        self.action = torch.rand(size, ACTIONS, device=device) * 2 - 1
        self.choice = torch.randint(2, (size, 1), device=device)
        self.reward = torch.rand(size, 1, device=device)


def _dqn(hidden: list[int], device: str) -> list[Update]:
    data, network = _Samples(FILL, 4, device), _network([4, *hidden, 2], device)
    target, optimizer = copy.deepcopy(network), _adam(device, network)

    def update(index: Tensor) -> None:
        with torch.no_grad():
            best = network(data.next_obs[index]).argmax(1, keepdim=True)
            value = target(data.next_obs[index]).gather(1, best)
            goal = data.reward[index] + GAMMA * value
        q = network(data.obs[index]).gather(1, data.choice[index])
        _step(optimizer, F.mse_loss(q, goal))
        _follow(target, network)

    return [update]


def _critics(hidden: list[int], device: str) -> nn.ModuleList:
    return nn.ModuleList(_network([OBS + ACTIONS, *hidden, 1], device) for _ in range(2))


def _lower(critics: nn.ModuleList, obs: Tensor, action: Tensor) -> Tensor:
    joint = torch.cat([obs, action], 1)
    return torch.minimum(critics[0](joint), critics[1](joint))


def _critic_loss(critics: nn.ModuleList, obs: Tensor, action: Tensor, goal: Tensor) -> Tensor:
    joint = torch.cat([obs, action], 1)
    return F.mse_loss(critics[0](joint), goal) + F.mse_loss(critics[1](joint), goal)


def _sac(hidden: list[int], device: str) -> list[Update]:
    data, critics = _Samples(FILL, OBS, device), _critics(hidden, device)
    actor, targets = _network([OBS, *hidden, 2 * ACTIONS], device), copy.deepcopy(critics)
    log_alpha = nn.Parameter(torch.zeros(1, device=device))
    alpha_only = nn.ParameterList([log_alpha])
    of_actor, of_critics = _adam(device, actor), _adam(device, critics)
    of_alpha = _adam(device, alpha_only)

    def act(obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = actor(obs).chunk(2, 1)
        log_std = log_std.clamp(-20, 2)
        noise = torch.randn_like(mean)
        action = torch.tanh(mean + log_std.exp() * noise)
        density = -0.5 * noise**2 - log_std - 0.919 - torch.log(1 - action**2 + 1e-6)
        return action, density.sum(1, keepdim=True)

    def update(index: Tensor) -> None:
        obs, next_obs = data.obs[index], data.next_obs[index]
        with torch.no_grad():
            next_action, log_prob = act(next_obs)
            soft = _lower(targets, next_obs, next_action) - log_alpha.exp() * log_prob
            goal = data.reward[index] + GAMMA * soft
        _step(of_critics, _critic_loss(critics, obs, data.action[index], goal))
        action, log_prob = act(obs)
        _step(of_actor, (log_alpha.exp().detach() * log_prob - _lower(critics, obs, action)).mean())
        _step(of_alpha, -(log_alpha * (log_prob.detach() - ACTIONS)).mean())
        _follow(targets, critics)

    return [update]


def _td3(hidden: list[int], device: str) -> list[Update]:
    data, critics = _Samples(FILL, OBS, device), _critics(hidden, device)
    actor = nn.Sequential(_network([OBS, *hidden, ACTIONS], device), nn.Tanh())
    targets, target_actor = copy.deepcopy(critics), copy.deepcopy(actor)
    of_actor, of_critics = _adam(device, actor), _adam(device, critics)

    def learn_values(index: Tensor) -> None:
        next_obs = data.next_obs[index]
        with torch.no_grad():
            noise = (torch.randn_like(data.action[index]) * 0.2).clamp(-0.5, 0.5)
            next_action = (target_actor(next_obs) + noise).clamp(-1, 1)
            goal = data.reward[index] + GAMMA * _lower(targets, next_obs, next_action)
        _step(of_critics, _critic_loss(critics, data.obs[index], data.action[index], goal))

    def learn_both(index: Tensor) -> None:
        learn_values(index)
        obs = data.obs[index]
        _step(of_actor, -critics[0](torch.cat([obs, actor(obs)], 1)).mean())
        _follow(targets, critics)
        _follow(target_actor, actor)

    return [learn_values, learn_both]  # the actor learns at every second update


def _ppo(hidden: list[int], device: str) -> list[Update]:
    data = _Samples(ROLLOUT, 4, device)
    actor, critic = _network([4, *hidden, 2], device), _network([4, *hidden, 1], device)
    optimizer = _adam(device, actor, critic)
    old_log_prob = torch.full((ROLLOUT, 1), -0.69, device=device)
    advantage, returns = torch.randn(ROLLOUT, 1, device=device), data.reward

    def update(index: Tensor) -> None:
        log_prob = actor(data.obs[index]).log_softmax(1)
        taken = log_prob.gather(1, data.choice[index])
        ratio, a = (taken - old_log_prob[index]).exp(), advantage[index]
        a = (a - a.mean()) / (a.std() + 1e-8)
        policy_loss = -torch.minimum(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
        value_loss = F.mse_loss(critic(data.obs[index]), returns[index])
        entropy = -(log_prob.exp() * log_prob).sum(1).mean()
        optimizer.zero_grad()
        (policy_loss + 0.5 * value_loss - 0.01 * entropy).backward()
        nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
        optimizer.step()

    return [update]


UPDATES = {"dqn": _dqn, "ppo": _ppo, "sac": _sac, "td3": _td3}
