"""Networks over sets of entities, maps and images."""

import pytest
import torch

from ding.torch_utils import ScatterConnection, Transformer, get_num_params, resnet18


class TestScatterConnection:
    def test_each_entity_at_its_place(self):
        x = torch.randn(2, 3, 4)
        location = torch.tensor([[[0, 1], [2, 0], [4, 5]], [[1, 1], [0, 0], [3, 2]]])
        out = ScatterConnection("add")(x, (5, 6), location)
        assert out.shape == (2, 4, 5, 6)
        expected = torch.zeros(2, 4, 5, 6)
        for b in range(2):
            for m, (row, column) in enumerate(location[b].tolist()):
                expected[b, :, row, column] = x[b, m]
        torch.testing.assert_close(out, expected)

    @pytest.mark.parametrize(("kind", "value"), [("add", 7.0), ("cover", 4.0)])
    def test_several_in_one_place(self, kind, value):
        x = torch.tensor([[[1.0], [2.0], [4.0]]], requires_grad=True)
        location = torch.zeros(1, 3, 2, dtype=torch.int64)
        out = ScatterConnection(kind)(x, (2, 2), location)
        assert out.sum().item() == out[0, 0, 0, 0].item() == value
        out.sum().backward()
        assert x.grad.reshape(-1).tolist() == ([1, 1, 1] if kind == "add" else [0, 0, 1])

    def test_columns_and_rows_apart_and_outside(self):
        x = torch.ones(1, 2, 1)
        column, row = torch.tensor([[1, 9]]), torch.tensor([[2, -3]])
        out = ScatterConnection("cover").xy_forward(x, (3, 4), column, row)
        assert out[0, 0].nonzero().tolist() == [[0, 3], [2, 1]]

    def test_unknown_type(self):
        with pytest.raises(ValueError, match="'add' or 'cover'"):
            ScatterConnection("mean")


class TestTransformer:
    def test_shapes_and_gradients(self):
        net = Transformer(5, head_dim=4, hidden_dim=8, output_dim=6, dropout_ratio=0.1)
        out = net(torch.randn(3, 7, 5))
        assert out.shape == (3, 7, 6)
        out.sum().backward()
        assert all(p.grad is not None for p in net.parameters())

    def test_order_does_not_matter(self):
        torch.manual_seed(0)
        net, x = Transformer(5, output_dim=6), torch.randn(2, 4, 5)
        order = torch.tensor([2, 0, 3, 1])
        torch.testing.assert_close(net(x)[:, order], net(x[:, order]))

    def test_what_is_not_there_is_not_seen(self):
        torch.manual_seed(0)
        net, x = Transformer(5, output_dim=6), torch.randn(2, 4, 5)
        mask = torch.tensor([[True, True, False, False], [True, False, True, True]])
        other = torch.where(mask.unsqueeze(-1), x, 100.0)
        torch.testing.assert_close(net(x, mask)[mask], net(other, mask)[mask])
        torch.testing.assert_close(net(x, mask)[:1, :2], net(x[:1, :2]))
        assert net(x, torch.zeros(2, 4, dtype=torch.bool)).isfinite().all()


def test_resnet18():
    net = resnet18()
    assert get_num_params(net) == 11_689_512  # the paper's network with a thousand classes
    assert net(torch.randn(2, 3, 64, 64)).shape == (2, 1000)
