"""Type names for tensors in the annotations of this package.

Keras' tensors have no common class: a tensor of the TensorFlow backend, a JAX array
and a symbolic `KerasTensor` share nothing that a type checker could see. The names
below say what is meant; shapes are in docstrings and comments, in the package's axis
letters: `B` batch, `K` beams, `T` target, `S` source, `H` heads, `D` head width, `V`
vocabulary.
"""

from collections.abc import Mapping
from typing import Any
from typing import TypeAlias

# A tensor of the current backend, or what Keras converts to one.
Tensor: TypeAlias = Any

# Tensors in dicts, lists and tuples, such as a decoding state.
NestedTensors: TypeAlias = Any

# A decoding state or memory: tensors by name, nested at will.
State: TypeAlias = dict[str, Any]

# Result of `prepare` of an attention layer; `None` in self-attention.
Memory: TypeAlias = Any

# A static shape: integers, and `None` for sizes that are not known before a call.
Shape: TypeAlias = tuple[Any, ...]

# A number known when a graph is built, or a scalar int32 tensor.
Size: TypeAlias = Any

# An initializer, regularizer or constraint of Keras: a name, a configuration, an object
# or `None`.
Identifier: TypeAlias = str | Mapping[str, Any] | Any | None

# A dtype name, or a Keras dtype policy.
DType: TypeAlias = Any
