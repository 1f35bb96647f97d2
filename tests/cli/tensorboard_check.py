"""Reads the event files of a run's folder with TensorBoard's own reader: `tensorboard_check.py FOLDER`.

Prints a line each of every tag: "TAG STEP:VALUE STEP:VALUE ..." of scalars, with 9 digits, and "text TAG COUNT" of texts.
"""

import sys

from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray


def main(folder):
    events = EventAccumulator(folder, tensor_size_guidance={"scalars": 0, "text": 0})
    events.Reload()
    for tag in sorted(events.Tags()["tensors"]):
        plugin = events.SummaryMetadata(tag).plugin_data.plugin_name
        if plugin == "scalars":
            print(tag, *(f"{event.step}:{make_ndarray(event.tensor_proto).item():.9g}" for event in events.Tensors(tag)))
        else:
            print(plugin, tag, len(events.Tensors(tag)))


if __name__ == "__main__":
    main(sys.argv[1])
