"""MineStudio's own data pipeline, for a test and a benchmark that run it in a process of its own.

minestudio_data.py convert ROOT DATASET    its converters: ROOT/mp4, ROOT/jsonl -> LMDB
minestudio_data.py windows DATASET FILE    what its RawDataset reads at 24x16, pickled
"""

import gzip
import importlib.machinery
import io
import pickle
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import av
import cv2
import lmdb
import minestudio
import numpy as np

CHUNK = 8
OPTIONS = [
    {"win_len": 8},
    {"win_len": 13},
    {"win_len": 30},
    {"win_len": 6, "skip_frame": 3},
    {"win_len": 7, "previous_action": True},
    {"win_len": 5, "skip_frame": 2, "previous_action": True},
]
"""How windows are cut for the test."""
SIZE = (24, 16)


def bypass_packages():
    """Import the modules below, but not what their packages import: training and its gigabytes."""
    root = Path(minestudio.__path__[0])
    for name in ("data", "data.minecraft", "data.minecraft.tools"):
        package = types.ModuleType(f"minestudio.{name}")
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        package.__spec__ = importlib.machinery.ModuleSpec(package.__name__, None, is_package=True)
        sys.modules[package.__name__] = package
    # Augments pictures, and trains.
    sys.modules["albumentations"] = MagicMock()
    for name in ("lightning", "lightning.pytorch"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["lightning.pytorch"].LightningDataModule = object
    sys.modules["lightning"].pytorch = sys.modules["lightning.pytorch"]
    # Its datasets open their databases anew, which today's lmdb refuses in one process.
    lmdb.open = cache(lmdb.open)


def convert(root, dataset):
    """Run the converters, as ConvertManager does in workers of Ray's."""
    from minestudio.data.minecraft.callbacks import (
        ActionConvertCallback,
        ImageConvertCallback,
        MetaInfoConvertCallback,
    )
    from minestudio.data.minecraft.tools.convertion import ConvertManager, ConvertWorker
    from minestudio.data.minecraft.tools.process_all_openai import run

    class ActionConvert(ActionConvertCallback):
        """Theirs but for its constructor, which gives its base class nothing and raises."""

        def __init__(self, input_dirs, chunk_size):
            self.input_dirs, self.chunk_size = input_dirs, chunk_size

    folders = {"video": "videos", "action": "actions", "privilege": "privileged_infos"}
    for folder in folders.values():
        (root / folder).mkdir()
    for lines in sorted((root / "jsonl").glob("*.jsonl")):
        name = lines.stem
        files = {
            f"{kind}_path": root / folder / f"{name}{'.mp4' if kind == 'video' else '.pkl'}"
            for kind, folder in folders.items()
        }
        video = root / "mp4" / f"{name}.mp4"
        assert run({"name": name, "mp4_path": video, "json_path": lines, **files})
    Worker = ConvertWorker.__ray_metadata__.modified_class
    for modal, folder, callback in (
        ("action", "actions", ActionConvert),
        ("image", "videos", ImageConvertCallback),
        ("meta_info", "privileged_infos", MetaInfoConvertCallback),
    ):
        kernel = callback(input_dirs=[str(root / folder)], chunk_size=CHUNK)
        manager = ConvertManager(str(dataset / modal), kernel, chunk_size=CHUNK, num_workers=1)
        manager.prepare_tasks()
        progress = SimpleNamespace(update=SimpleNamespace(remote=lambda count: None))
        place = dataset / modal / "part-1"
        worker = Worker(place, kernel, manager.loaded_episodes, CHUNK, progress)
        worker.run()
        worker.lmdb_handler.close()


def raw_dataset(dataset, win_len, skip_frame=1, size=(128, 128), previous_action=False):
    """Return MineStudio's dataset of windows."""
    from minestudio.data.minecraft.callbacks import (
        ActionKernelCallback,
        ImageKernelCallback,
        MetaInfoKernelCallback,
    )
    from minestudio.data.minecraft.dataset_raw import RawDataset

    class ImageKernel(ImageKernelCallback):
        """Theirs but for the end of decoding: streams of PyAV have no `close` any more."""

        def do_decode(self, chunk, **_):
            size = (self.frame_width, self.frame_height)

            def scaled(frame):
                picture = frame.to_ndarray(format="rgb24")
                if picture.shape[1::-1] != size:
                    picture = cv2.resize(picture, size, interpolation=cv2.INTER_LINEAR)
                return picture

            pool = ThreadPoolExecutor(self.num_workers)
            with pool as executor, av.open(io.BytesIO(chunk), "r") as container:
                stream = container.streams.video[0]
                stream.thread_type = "AUTO"
                decoded = [frame for packet in container.demux(stream) for frame in packet.decode()]
                pictures = [executor.submit(scaled, frame) for frame in decoded]
                return np.array([picture.result() for picture in pictures])

    biases = {"enable_prev_action": True, "read_bias": -1, "win_bias": 1}
    return RawDataset(
        dataset_dirs=[str(dataset)],
        modal_kernel_callbacks=[
            ImageKernel(frame_width=size[0], frame_height=size[1]),
            ActionKernelCallback(**(biases if previous_action else {})),
            MetaInfoKernelCallback(),
        ],
        win_len=win_len,
        skip_frame=skip_frame,
        split_ratio=1.0,
    )


def as_arrays(value):
    """Tensors as arrays."""
    if isinstance(value, dict):
        return {key: as_arrays(part) for key, part in value.items()}
    return value.numpy() if hasattr(value, "numpy") else value


if __name__ == "__main__":
    bypass_packages()
    command, source, target = sys.argv[1], *map(Path, sys.argv[2:])
    if command == "convert":
        convert(source, target)
    else:
        found = []
        for options in OPTIONS:
            windows = raw_dataset(source, **options, size=SIZE)
            found.append([as_arrays(windows[i]) for i in range(len(windows))])
        target.write_bytes(gzip.compress(pickle.dumps(found)))
