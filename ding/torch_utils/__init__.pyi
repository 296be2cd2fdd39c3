from .checkpoint_helper import (
    CheckpointHelper as CheckpointHelper,
)
from .checkpoint_helper import (
    CountVar as CountVar,
)
from .checkpoint_helper import (
    auto_checkpoint as auto_checkpoint,
)
from .checkpoint_helper import (
    build_checkpoint_helper as build_checkpoint_helper,
)
from .data_helper import (
    CudaFetcher as CudaFetcher,
)
from .data_helper import (
    LogDict as LogDict,
)
from .data_helper import (
    build_log_buffer as build_log_buffer,
)
from .data_helper import (
    get_null_data as get_null_data,
)
from .data_helper import (
    get_tensor_data as get_tensor_data,
)
from .data_helper import (
    one_hot as one_hot,
)
from .data_helper import (
    same_shape as same_shape,
)
from .data_helper import (
    squeeze as squeeze,
)
from .data_helper import (
    tensor_to_list as tensor_to_list,
)
from .data_helper import (
    to_device as to_device,
)
from .data_helper import (
    to_dtype as to_dtype,
)
from .data_helper import (
    to_item as to_item,
)
from .data_helper import (
    to_list as to_list,
)
from .data_helper import (
    to_ndarray as to_ndarray,
)
from .data_helper import (
    to_tensor as to_tensor,
)
from .data_helper import (
    unsqueeze as unsqueeze,
)
from .data_helper import (
    zeros_like as zeros_like,
)
from .dataparallel import (
    DataParallel as DataParallel,
)
from .math_helper import (
    cov as cov,
)
from .model_helper import (
    get_num_params as get_num_params,
)
from .network import (
    MLP as MLP,
)
from .network import (
    NoiseLinearLayer as NoiseLinearLayer,
)
from .network import (
    ResBlock as ResBlock,
)
from .network import (
    ResFCBlock as ResFCBlock,
)
from .network import (
    ResNet as ResNet,
)
from .network import (
    ScatterConnection as ScatterConnection,
)
from .network import (
    Transformer as Transformer,
)
from .network import (
    build_activation as build_activation,
)
from .network import (
    build_normalization as build_normalization,
)
from .network import (
    conv2d_block as conv2d_block,
)
from .network import (
    fc_block as fc_block,
)
from .network import (
    noise_block as noise_block,
)
from .network import (
    resnet18 as resnet18,
)
from .nn_test_helper import (
    is_differentiable as is_differentiable,
)
from .optimizer_helper import (
    Adam as Adam,
)
from .optimizer_helper import (
    PCGrad as PCGrad,
)
from .optimizer_helper import (
    RMSprop as RMSprop,
)
from .optimizer_helper import (
    calculate_grad_norm as calculate_grad_norm,
)
from .optimizer_helper import (
    calculate_grad_norm_without_bias_two_norm as calculate_grad_norm_without_bias_two_norm,
)
from .optimizer_helper import (
    configure_weight_decay as configure_weight_decay,
)
from .reshape_helper import (
    fold_batch as fold_batch,
)
from .reshape_helper import (
    unfold_batch as unfold_batch,
)
from .reshape_helper import (
    unsqueeze_repeat as unsqueeze_repeat,
)
from .weights_file import (
    read_weights as read_weights,
)
from .weights_file import (
    write_weights as write_weights,
)
