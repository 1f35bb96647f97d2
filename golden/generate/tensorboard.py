"""tensorboard: records of an event file, byte for byte as TensorBoard's own message classes and RecordWriter write them.

Its reader, which the issue is about, is tried by tests/cli/tensorboard_check.py where the package is installed.
"""

import io

import numpy as np
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc32c, masked_crc32c
from tensorboard.summary.writer.record_writer import RecordWriter

from .golden_file import Golden, tool_versions

WALL_TIME = 1700000000.25
TEXTS = ["", "a", "123456789", "0" * 300]  # 0xE3069283 is the check value of "123456789"


def events():
    yield "version", event_pb2.Event(wall_time=WALL_TIME, file_version="brain.Event:2")
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    yield "start", event_pb2.Event(wall_time=WALL_TIME, step=300, session_log=start)
    values = [summary_pb2.Summary.Value(tag="loss/training", simple_value=3.1415926535,
                                        metadata=summary_pb2.SummaryMetadata(
                                            plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="scalars"), summary_description="nats per token")),
              summary_pb2.Summary.Value(tag="optimizer/learning_rate", simple_value=0.0),
              summary_pb2.Summary.Value(tag="größe", simple_value=float("inf"))]
    yield "scalars", event_pb2.Event(wall_time=WALL_TIME, step=2**40, summary=summary_pb2.Summary(value=values))
    tensor = tensor_pb2.TensorProto(dtype="DT_STRING", string_val=["| a | b |\n".encode()], tensor_shape=tensor_shape_pb2.TensorShapeProto())
    metadata = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"),
                                           data_class=summary_pb2.DATA_CLASS_TENSOR)
    text = summary_pb2.Summary.Value(tag="settings", tensor=tensor, metadata=metadata)
    yield "text", event_pb2.Event(wall_time=WALL_TIME, summary=summary_pb2.Summary(value=[text]))


def framed(message):
    file = io.BytesIO()
    RecordWriter(file).write(message.SerializeToString(deterministic=True))
    return np.frombuffer(file.getvalue(), dtype=np.uint8).astype(np.int64)


def cases():
    tensors = {name: framed(event) for name, event in events()}
    tensors["crc32c"] = np.array([crc32c(text.encode()) for text in TEXTS], dtype=np.int64)
    tensors["masked_crc32c"] = np.array([masked_crc32c(text.encode()) for text in TEXTS], dtype=np.int64)
    yield Golden("tensorboard", "events", "tensorboard", "tensorboard.compat.proto and tensorboard.summary.writer.record_writer",
                 tool_versions("tensorboard", "protobuf"), tensors, texts={f"text_{n}": text for n, text in enumerate(TEXTS)},
                 folder="tensorboard")
