"""Updates per second on a GPU: as they are, compiled, as CUDA graphs, in bfloat16; against peers.

    python benchmarks/gpu.py [sac td3 dqn ppo] [--device cuda|cpu] [--rounds N] [--seconds S]

Peers are SB3 and loops written by hand: eager, and with each update one compiled function, as
LeanRL's scripts have it (``_compiled_sides.py``). Networks and batches are those of
``policies.py``. A side compiles before it is measured, which takes up to a minute. ``--frames``
compares the forms of this project alone on 84x84x4 observations (dqn, ppo). Without a GPU,
``--device cpu`` measures what compiling brings there.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from statistics import median

import _policy_sides as sides
from _peers import peer_python
from _timing import Figure, in_turns, serve, table

#: Forms of this project's updates, as keys of ``policy.learn``.
FORMS: dict[str, dict[str, bool | str]] = {
    "eager": {},
    "compiled": dict(compile=True),
    "graphs": dict(compile="reduce-overhead"),
    "bfloat16": dict(mixed_precision=True),
}
#: Those that are for GPUs alone.
GPU_FORMS = {"graphs"}
#: Peer to the least ratio of our best form to it that is wanted.
GOALS = {"eager": 1.0, "sb3": 2.0, "hand-written": 0.95, "hand-written compiled": 0.9}
NAMES = ("sac", "td3", "dqn", "ppo")
#: Updates before the first measurement: each form of input is compiled at its first call.
WARM_UP = 30


def build(side: str) -> Callable[[], int]:
    """The updates of a side, ``WHOSE:FORM:POLICY:DEVICE:SHAPE``."""
    whose, form, name, device, shape = side.split(":")
    if whose == "sb3":
        act = sides.sb3(name, device)
    elif whose == "hand-written":
        import _compiled_sides

        act = _compiled_sides.build(name, device, form == "compiled")
    else:
        act = _ding(name, form, device, shape == "frames")
    updates = 0
    while updates < WARM_UP:
        updates += act()
    return act if device == "cpu" else _to_the_end(act)


def _ding(name: str, form: str, device: str, frames: bool) -> Callable[[], int]:
    os.chdir(tempfile.mkdtemp())
    main, create = sides.frames_config(name) if frames else sides.ding_config(name)
    main["policy"]["cuda"] = device == "cuda"
    main["policy"]["learn"].update(FORMS[form])
    return sides.updates(main, create, name, frames)


def _to_the_end(act: Callable[[], int]) -> Callable[[], int]:
    """`act`, with what it has started on the GPU counted in."""
    import torch

    def wait() -> int:
        done = act()
        torch.cuda.synchronize()
        return done

    return wait


def measure(names: list[str], args: argparse.Namespace) -> list[Figure]:
    figures = []
    for name in names:
        figures += _figures_of(name, args)
    return figures


def _figures_of(name: str, args: argparse.Namespace) -> list[Figure]:
    """Our forms against eager, and the best of them against each peer."""
    shape = "frames" if args.frames else "vectors"
    where = f"{name}:{args.device}:{shape}"
    forms = [form for form in FORMS if args.device == "cuda" or form not in GPU_FORMS]
    pythons: dict[str, str | None] = {f"ding:{form}:{where}": None for form in forms}
    if not args.frames:
        pythons |= {f"hand-written:{form}:{where}": None for form in ("eager", "compiled")}
        pythons[f"sb3:eager:{where}"] = peer_python("peers")
    speeds = in_turns(__file__, pythons, args.rounds, args.seconds)
    ours = {form: speeds[f"ding:{form}:{where}"] for form in forms}
    best = max(ours, key=lambda form: median(ours[form]))
    title = f"{name}, {args.device}, {shape}"
    rows = [
        Figure(f"{title}, {form}", values, ours["eager"], "eager", GOALS["eager"])
        for form, values in ours.items()
        if form != "eager"
    ]
    for side, values in speeds.items():
        whose, form, _ = side.split(":", 2)
        peer = whose if form == "eager" else f"{whose} {form}"
        if whose != "ding":
            rows.append(Figure(f"{title}, {best}", ours[best], values, peer, GOALS[peer]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="POLICY", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--frames", action="store_true", help="84x84x4 observations: dqn, ppo")
    parser.add_argument("--serve", metavar="SIDE", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    args = parser.parse_args()
    if args.serve:
        serve(lambda: build(args.serve))
        return
    names = args.names or [name for name in NAMES if not args.frames or name in sides.FRAME_BATCH]
    if unknown := set(names) - {*NAMES}:
        parser.error(f"no policy {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if args.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            parser.error("torch finds no GPU here; measure with --device cpu, or where one is")
    print(table(measure(names, args)))


if __name__ == "__main__":
    main()
