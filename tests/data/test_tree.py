"""Trees of arrays and tensors, joined and taken apart."""

import numpy as np
import torch

from ding.data import tree_join, tree_rows, tree_take


def test_trees_are_joined_leaf_by_leaf():
    trees = [{"a": np.full(2, i), "b": {"c": np.full(3, -i)}} for i in (1, 2)]
    joined = tree_join(np.stack, trees)
    assert joined["a"].tolist() == [[1, 1], [2, 2]]
    assert joined["b"]["c"].shape == (2, 3)
    assert tree_join(torch.cat, [torch.zeros(1), torch.ones(2)]).tolist() == [0, 1, 1]


def test_rows_are_trees():
    tree = {"h": torch.arange(6).view(3, 2), "c": {"d": torch.arange(3)}}
    rows = tree_rows(tree)
    assert len(rows) == 3
    assert rows[1]["h"].tolist() == tree_take(tree, 1)["h"].tolist() == [2, 3]
    assert rows[2]["c"]["d"] == 2
    assert tree_join(torch.stack, rows)["h"].equal(tree["h"])
