"""Folders as runs leave them."""

import json
import os
import platform


def make_run(folder, returns=(10.0, 20.0, 30.0), metrics=True, **facts):
    """A run's folder, ended as ``converged`` unless the facts say otherwise."""
    folder.mkdir(parents=True)
    record = {
        "exp_name": f"exp/{folder.name}",
        "status": "converged",
        "reason": "mean return 30 reached stop_value 25",
        "started": "2026-01-02T03:04:05+00:00",
        "seconds": 100.0,
        "seed": 0,
        "pid": os.getpid(),
        "host": platform.node(),
        "best_return": max(returns, default=None),
        "envstep": 1000,
        **facts,
    }
    write_record(folder, record)
    learning_rate = facts.get("learning_rate", 0.001)
    (folder / "total_config.py").write_text(
        "exp_config = {\n"
        f"    'exp_name': 'exp/{folder.name}',\n"
        f"    'seed': {record['seed']},\n"
        f"    'policy': {{'learn': {{'learning_rate': {learning_rate}}}, 'nstep': 3}},\n"
        "    'limit': float('inf'),\n"
        "}\n"
    )
    if metrics:
        add_rows(folder, returns)
    log = folder / "log" / "serial"
    log.mkdir(parents=True)
    (log / "serial_logger.txt").write_text("a line\n<b>another</b> line\n")
    return folder


def write_record(folder, record):
    (folder / "run.json").write_text(json.dumps(record))


def add_rows(folder, returns, start=0):
    """An evaluation every 100 env steps, of 25 updates each, and a loss."""
    with open(folder / "metrics.jsonl", "a") as file:
        for i, value in enumerate(returns, start):
            head = {"time": 1000.0 + i, "step": 25 * i}
            for row in (
                {**head, "evaluator_iter/reward_mean": value},
                {**head, "step": 100 * i, "evaluator_step/reward_mean": value},
                {**head, "learner_iter/total_loss_avg": 1 / (i + 1)},
            ):
                file.write(json.dumps(row) + "\n")
