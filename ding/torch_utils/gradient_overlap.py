"""Gradients that are averaged over processes, also while the backward pass still runs."""

import itertools
import weakref
from collections.abc import Sequence

import torch

from ding.utils.pytorch_ddp_dist_helper import allreduce, allreduce_async, synchronize

#: Bytes of a message, at least: small ones cost their latency, not their size.
BUCKET_BYTES = 1 << 18

_numbers = itertools.count()


def average_gradients(parameters: Sequence[torch.Tensor]) -> None:
    """Give each parameter its average gradient over all processes; zero where it had none."""
    if parameters:
        # One message for all: small tensors cost their latency, not their size.
        flat = _flat_gradients(parameters)
        allreduce(flat)
        hand_out(flat, parameters)


def _flat_gradients(parameters: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat(
        [torch.zeros_like(p).view(-1) if p.grad is None else p.grad.reshape(-1) for p in parameters]
    )


def hand_out(flat: torch.Tensor, parameters: Sequence[torch.Tensor]) -> None:
    """Give parameters their parts of one vector as gradients, which are views of it."""
    for parameter, grad in zip(parameters, flat.split([p.numel() for p in parameters])):
        parameter.grad = grad.view_as(parameter)


class GradientOverlap:
    """Sends the gradients of a model's parameters off as soon as they are computed.

    Parameters are sent in buckets, from the last layer to the first, which is about the order of
    the backward pass. All processes send the buckets in that one order, whatever theirs is. A
    bucket is of one part of the model alone (encoder, actor, critic), as a loss may be.

    Args:
        model: Its parameters are watched for as long as this object lives.
        bucket_bytes: Bytes of a bucket that is not its part's last one, at least.
    """

    def __init__(self, model: torch.nn.Module, bucket_bytes: int = BUCKET_BYTES) -> None:
        self._buckets: list[list[torch.nn.Parameter]] = []
        self._bucket_of: dict[torch.nn.Parameter, int] = {}
        size, of = 0, None
        trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        for name, parameter in reversed(trained):
            part = name.partition(".")[0]
            if size >= bucket_bytes or part != of:
                self._buckets.append([])
                size, of = 0, part
            self._buckets[-1].append(parameter)
            self._bucket_of[parameter] = len(self._buckets) - 1
            size += parameter.numel() * parameter.element_size()
        self._begin()
        ready = weakref.WeakMethod(self._ready)

        def note(parameter: torch.Tensor) -> None:
            if (call := ready()) is not None:
                call(parameter)

        for parameter in self._bucket_of:
            parameter.register_post_accumulate_grad_hook(note)

    def _begin(self) -> None:
        self._waiting = [len(bucket) for bucket in self._buckets]
        self._seen: set[torch.Tensor] = set()
        self._changed: set[int] = set()
        self._sent: list[torch.Tensor] = []

    def _ready(self, parameter: torch.Tensor) -> None:
        """A parameter has its gradient; another one has been added to it if this comes again."""
        bucket = self._bucket_of[parameter]  # type: ignore[index]
        if parameter in self._seen:
            self._changed.add(bucket)
            return
        self._seen.add(parameter)
        self._waiting[bucket] -= 1
        while len(self._sent) < len(self._buckets) and not self._waiting[len(self._sent)]:
            self._send(len(self._sent))

    def _send(self, bucket: int) -> None:
        flat = _flat_gradients(self._buckets[bucket])
        allreduce_async(f"gradients {next(_numbers)}", flat)
        self._sent.append(flat)

    def finish(self) -> None:
        """Send what is left, wait, and give each parameter its average gradient."""
        for number in range(len(self._sent), len(self._buckets)):
            self._changed.discard(number)
            self._send(number)
        sent = list(self._sent)
        for number in sorted(self._changed):  # the same in all processes
            self._send(number)
            sent[number] = self._sent[-1]
        synchronize()
        for bucket, flat in zip(self._buckets, sent):
            hand_out(flat, bucket)
        self._begin()
