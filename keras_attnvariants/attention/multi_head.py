"""Base classes that add projections and heads to `BaseAttention`.

* `ProjectedAttention`: dense layers with the usual Keras options, and an output
  projection;
* `MultiHeadBase`: several heads;
* `QueryKeyValueAttention`: queries, keys and values, for weights of any kind;
* `SoftmaxAttention`: weights that are the softmax of energies, with dropout.
"""

import math
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.base import BaseAttention
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import without_keras_options
from keras_attnvariants.attention.registry import ROLES
from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import Dropout
from keras_attnvariants.backend import reshape
from keras_attnvariants.backend import sizes
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.typing import DType
from keras_attnvariants.utils.typing import Identifier
from keras_attnvariants.utils.typing import Tensor


class ProjectedAttention(BaseAttention):
    """Base class of layers with dense projections, one of them `output_dense`.

    A subclass makes its projections in `make_layers`, with `dense`. Unlike in Keras,
    they have no biases by default, as in most of the papers.

    Args:
        use_bias: whether the projections have biases.
        kernel_initializer: initializer of the input projections.
        output_initializer: initializer of the output projection; `None` to use
            `kernel_initializer`.
        bias_initializer: initializer of the biases, if any.
        kernel_regularizer, bias_regularizer: regularizers of all projections.
        kernel_constraint, bias_constraint: constraints of all projections.
    """

    def __init__(
        self,
        use_bias: bool = False,
        kernel_initializer: Identifier = "glorot_uniform",
        output_initializer: Identifier = None,
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None,
        bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.output_initializer = keras.initializers.get(
            kernel_initializer if output_initializer is None else output_initializer
        )
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)

    def dense(
        self,
        name: str,
        input_width: int,
        units: int,
        use_bias: bool | None = None,
        initializer: keras.initializers.Initializer | None = None,
    ) -> keras.layers.Dense:
        """A built projection from `input_width` to `units`.

        Args:
            name: name of the layer, used in the paths of its weights.
            use_bias: whether it has a bias; `None` for `self.use_bias`.
            initializer: initializer of the kernel; `None` for `kernel_initializer`.
        """
        use_bias = self.use_bias if use_bias is None else use_bias
        layer = Dense(units, use_bias=use_bias, **self.dense_options(name, initializer))
        layer.build((None, None, input_width))
        return layer

    def dense_options(
        self, name: str, initializer: keras.initializers.Initializer | None
    ) -> dict[str, Any]:
        """Arguments of a Keras layer with a kernel and a bias."""
        initializer = initializer or self.kernel_initializer
        # Clones, so that two weights do not share random numbers.
        return {
            "kernel_initializer": initializer.clone(),
            "kernel_regularizer": self.kernel_regularizer,
            "kernel_constraint": self.kernel_constraint,
            "bias_initializer": self.bias_initializer.clone(),
            "bias_regularizer": self.bias_regularizer,
            "bias_constraint": self.bias_constraint,
            "dtype": self.dtype_policy,
            "name": name,
        }

    def dense_output(self, context_width: int, width: int) -> keras.layers.Dense:
        """A built output projection, to be stored as `output_dense`."""
        return self.dense(
            "output", context_width, width, initializer=self.output_initializer
        )

    def project_output(self, context: Tensor, training: bool | None = False) -> Tensor:
        """The output `[..., width]` for a context `[..., H, D]`."""
        return self.output_dense(merge_heads(context))


class MultiHeadBase(ProjectedAttention):
    """Base class of layers with several heads.

    Unless a subclass overrides `make_layers`, there are projections of values
    (`value_dense`, heads of width `head_dim`) and of outputs.

    Args:
        num_heads: number of heads `H`.
        value_dim: width `D` of a head's values; `None` for width / `num_heads`.
        **kwargs: as in `ProjectedAttention`.

    Raises:
        ValueError: a size is not a positive integer. When built: `num_heads` does not
            divide the width, and the width of a head was not given.
    """

    def __init__(
        self, num_heads: int, value_dim: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = check_integer("num_heads", num_heads)
        self.value_dim = check_optional_integer("value_dim", value_dim)

    def make_layers(self, widths: Widths) -> None:
        width = widths.query
        self.head_dim = self.head_width("value_dim", self.value_dim, width)
        units = self.num_heads * self.head_dim
        self.value_dense = self.dense("value", widths.value, units)
        self.output_dense = self.dense_output(units, width)

    def head_width(self, name: str, given: int | None, width: int) -> int:
        """The width of one head: the argument `name`, or `width` over `num_heads`.

        Raises:
            ValueError: `given` is `None`, and `num_heads` does not divide `width`.
        """
        if given is not None:
            return given
        if width % self.num_heads:
            raise ValueError(
                f"`num_heads` must divide the width of the query unless `{name}` "
                f"is given. Received: num_heads={self.num_heads}, width={width}"
            )
        return width // self.num_heads

    def split(self, x: Tensor) -> Tensor:
        """`[..., H * D]` to `[..., H, D]`."""
        return split_heads(x, self.num_heads)


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """`[..., H * D]` to `[..., H, D]`."""
    return reshape(x, (*sizes(x)[:-1], num_heads, x.shape[-1] // num_heads))


def merge_heads(x: Tensor) -> Tensor:
    """`[..., H, D]` to `[..., H * D]`."""
    return reshape(x, (*sizes(x)[:-2], x.shape[-2] * x.shape[-1]))


class PerHeadInitializer(keras.initializers.Initializer):
    """Initializes the matrices of all heads, `[H, ..., units]`, as one matrix.

    Keras would treat such a kernel as a convolution kernel.

    Args:
        initializer: initializer of the one matrix, `[rows, H * units]`.
        before: number of rows of the matrix that precede the kernel.
    """

    def __init__(self, initializer: Identifier, before: int = 0) -> None:
        self.initializer = keras.initializers.get(initializer)
        self.before = before

    def __call__(self, shape: tuple[int, ...], dtype: DType = None) -> Tensor:
        *inputs, units = shape
        heads = [inputs.pop(0)] if len(shape) > 2 else []
        whole = (self.before + math.prod(inputs), math.prod(heads) * units)
        rows = self.initializer(whole, dtype=dtype)[self.before :]
        rows = ops.reshape(rows, (*inputs, *heads, units))
        return ops.moveaxis(rows, -2, 0) if heads else rows

    def get_config(self) -> dict[str, Any]:
        initializer = keras.initializers.serialize(self.initializer)
        return {"initializer": initializer, "before": self.before}


class QueryKeyValueAttention(MultiHeadBase):
    """Base class of layers that project queries, keys and values.

    Args:
        num_heads: number of heads `H`.
        key_dim: width of a head's queries and keys; `None` for width / `num_heads`.
        value_dim: width of a head's values; `None` for `key_dim`.
        **kwargs: as in `ProjectedAttention`.
    """

    roles = frozenset(ROLES)

    def __init__(
        self,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_optional_integer("key_dim", key_dim)
        super().__init__(
            num_heads, key_dim if value_dim is None else value_dim, **kwargs
        )
        self.key_dim = key_dim

    def make_layers(self, widths: Widths) -> None:
        self.head_key_dim = self.head_width("key_dim", self.key_dim, widths.query)
        units = self.num_heads * self.head_key_dim
        self.query_dense = self.dense("query", widths.query, units)
        self.key_dense = self.dense("key", widths.key, units)
        super().make_layers(widths)

    def joint_projections(self) -> list[tuple[Dense, ...]]:
        """The groups of layers with the same inputs in a step of self-attention.

        It is not a property because Keras would save the layers.
        """
        return [(self.query_dense, self.key_dense, self.value_dense)]

    def project_inputs(self, call: Call) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values by head, `[B, L, H, D]` each."""
        q = self.project_query(call.query)
        k = self.split(self.key_dense(call.keys))
        return q, k, self.split(self.value_dense(call.value))

    def project_query(self, query: Tensor) -> Tensor:
        """Queries `[..., H, D]` for inputs `[..., width]`."""
        return self.split(self.query_dense(query))


class SoftmaxAttention(QueryKeyValueAttention):
    """Base class of layers whose weights are the softmax of energies.

    Args:
        dropout: dropout rate of the attention weights.
        seed: random seed of the dropout.
        flash_attention: as in `DotProductAttention`; other layers refuse it.
        num_heads, key_dim, value_dim and others: as in `QueryKeyValueAttention`.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        seed: int | None = None,
        flash_attention: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, key_dim, value_dim, use_bias=use_bias, **kwargs)
        self.dropout = dropout
        self.seed = seed
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)
        self.flash_attention = flash_attention
        if not self.has_fused_form():
            options = {"flash_attention": flash_attention}
            without_keras_options(type(self).__name__, options)
        if flash_attention and dropout:
            raise ValueError(
                "`dropout` must be 0 if `flash_attention` is True: the kernel drops no "
                f"weights. Received: dropout={dropout}"
            )

    @classmethod
    def has_fused_form(cls) -> bool:
        """Whether the fused operation has this equation, except for a bias."""
        return False

    def drop(self, weights: Tensor, training: bool | None) -> Tensor:
        """Weights in the compute dtype, after dropout."""
        weights = ops.cast(weights, self.compute_dtype)
        return self.dropout_layer(weights, training=training)


def heads_first(x: Tensor, num_heads: int) -> Tensor:
    """`[B, L, H * D]` to `[B, H, L, D]`, the order for matrix products."""
    if x.shape[1] == 1:
        batch, _, width = sizes(x)
        return reshape(x, (batch, num_heads, 1, width // num_heads))
    return ops.transpose(split_heads(x, num_heads), (0, 2, 1, 3))
