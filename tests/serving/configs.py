"""Text files of TensorFlow Serving, read as the server reads them.

The messages that `tensorflow-serving-api` leaves out are declared here, after
`session_bundle_config.proto` and `monitoring_config.proto` of TensorFlow Serving.
"""

from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

__all__ = ["BatchingParameters", "ModelServerConfig", "MonitoringConfig", "read"]

FILE = """
name: "serving_configs.proto" package: "configs" syntax: "proto3"
message_type {
  name: "Int64Value"
  field { name: "value" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
}
message_type {
  name: "BatchingParameters"
  field { name: "max_batch_size" number: 1 type: TYPE_MESSAGE
          type_name: ".configs.Int64Value" label: LABEL_OPTIONAL }
  field { name: "batch_timeout_micros" number: 2 type: TYPE_MESSAGE
          type_name: ".configs.Int64Value" label: LABEL_OPTIONAL }
  field { name: "max_enqueued_batches" number: 3 type: TYPE_MESSAGE
          type_name: ".configs.Int64Value" label: LABEL_OPTIONAL }
  field { name: "num_batch_threads" number: 4 type: TYPE_MESSAGE
          type_name: ".configs.Int64Value" label: LABEL_OPTIONAL }
  field { name: "allowed_batch_sizes" number: 6 type: TYPE_INT64
          label: LABEL_REPEATED }
  field { name: "pad_variable_length_inputs" number: 7 type: TYPE_BOOL
          label: LABEL_OPTIONAL }
}
message_type {
  name: "PrometheusConfig"
  field { name: "enable" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "path" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
}
message_type {
  name: "MonitoringConfig"
  field { name: "prometheus_config" number: 1 type: TYPE_MESSAGE
          type_name: ".configs.PrometheusConfig" label: LABEL_OPTIONAL }
}
"""

pool = descriptor_pool.DescriptorPool()
pool.Add(text_format.Parse(FILE, descriptor_pb2.FileDescriptorProto()))
BatchingParameters, MonitoringConfig = (
    message_factory.GetMessageClass(pool.FindMessageTypeByName(f"configs.{name}"))
    for name in ("BatchingParameters", "MonitoringConfig")
)


def read(kind, path):
    """A message from its text file; unknown fields are errors, as in the server."""
    return text_format.Parse(path.read_text(), kind())
