from .checkpoint_helper import (
    CheckpointHelper as CheckpointHelper,
    CountVar as CountVar,
    auto_checkpoint as auto_checkpoint,
    build_checkpoint_helper as build_checkpoint_helper,
)
from .cuda_fetcher import (
    CudaFetcher as CudaFetcher,
)
from .data_helper import (
    LogDict as LogDict,
    build_log_buffer as build_log_buffer,
    get_null_data as get_null_data,
    get_tensor_data as get_tensor_data,
    same_shape as same_shape,
    squeeze as squeeze,
    tensor_to_list as tensor_to_list,
    to_device as to_device,
    to_dtype as to_dtype,
    to_item as to_item,
    to_list as to_list,
    to_ndarray as to_ndarray,
    to_tensor as to_tensor,
    unsqueeze as unsqueeze,
    zeros_like as zeros_like,
)
from .math_helper import (
    cov as cov,
)
from .model_helper import (
    DataParallel as DataParallel,
    get_num_params as get_num_params,
)
from .network import (
    MLP as MLP,
    NoiseLinearLayer as NoiseLinearLayer,
    ResBlock as ResBlock,
    ResFCBlock as ResFCBlock,
    ResNet as ResNet,
    ScatterConnection as ScatterConnection,
    Transformer as Transformer,
    build_activation as build_activation,
    build_normalization as build_normalization,
    conv2d_block as conv2d_block,
    fc_block as fc_block,
    noise_block as noise_block,
    one_hot as one_hot,
    resnet18 as resnet18,
)
from .nn_test_helper import (
    is_differentiable as is_differentiable,
)
from .optimizer_helper import (
    Adam as Adam,
    PCGrad as PCGrad,
    RMSprop as RMSprop,
    calculate_grad_norm as calculate_grad_norm,
    calculate_grad_norm_without_bias_two_norm as calculate_grad_norm_without_bias_two_norm,
    configure_weight_decay as configure_weight_decay,
)
from .reshape_helper import (
    fold_batch as fold_batch,
    unfold_batch as unfold_batch,
    unsqueeze_repeat as unsqueeze_repeat,
)
from .weights_file import (
    read_weights as read_weights,
    write_weights as write_weights,
)
