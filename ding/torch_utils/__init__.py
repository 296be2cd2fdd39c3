"""What torch needs around it: conversions, optimisers, checkpoints, network blocks."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "checkpoint_helper": [
            "CheckpointHelper",
            "CountVar",
            "auto_checkpoint",
            "build_checkpoint_helper",
        ],
        "data_helper": [
            "CudaFetcher",
            "LogDict",
            "build_log_buffer",
            "get_null_data",
            "get_tensor_data",
            "one_hot",
            "same_shape",
            "squeeze",
            "tensor_to_list",
            "to_device",
            "to_dtype",
            "to_item",
            "to_list",
            "to_ndarray",
            "to_tensor",
            "unsqueeze",
            "zeros_like",
        ],
        "dataparallel": ["DataParallel"],
        "math_helper": ["cov"],
        "model_helper": ["get_num_params"],
        "network": [
            "MLP",
            "NoiseLinearLayer",
            "ResBlock",
            "ResFCBlock",
            "build_activation",
            "build_normalization",
            "conv2d_block",
            "fc_block",
            "noise_block",
        ],
        "nn_test_helper": ["is_differentiable"],
        "optimizer_helper": [
            "Adam",
            "PCGrad",
            "RMSprop",
            "calculate_grad_norm",
            "calculate_grad_norm_without_bias_two_norm",
            "configure_weight_decay",
        ],
        "reshape_helper": ["fold_batch", "unfold_batch", "unsqueeze_repeat"],
    },
)
