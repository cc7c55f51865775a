"""MineStudio's converters and KernelManager read what `format: minestudio-dataset` writes.

dataset.py SOURCE LMDB
"""

import importlib.machinery
import io
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import av
import minestudio
import numpy as np
import report

SOURCE, LMDB = map(Path, sys.argv[1:])
CHUNK = 8


def bypass_packages():
    """Import the modules below, but not what their packages import: training and its gigabytes."""
    root = Path(minestudio.__path__[0])
    for name in ("data", "data.minecraft", "data.minecraft.tools"):
        package = types.ModuleType(f"minestudio.{name}")
        package.__path__ = [str(root.joinpath(*name.split(".")))]
        package.__spec__ = importlib.machinery.ModuleSpec(package.__name__, None, is_package=True)
        sys.modules[package.__name__] = package
    # Augments pictures in training.
    sys.modules["albumentations"] = MagicMock()


if __name__ == "__main__":
    bypass_packages()
    from minestudio.data.minecraft.callbacks import (
        ActionConvertCallback,
        ActionKernelCallback,
        ImageConvertCallback,
        ImageKernelCallback,
        MetaInfoConvertCallback,
        MetaInfoKernelCallback,
    )
    from minestudio.data.minecraft.core import KernelManager
    from minestudio.data.minecraft.tools.convertion import ConvertManager, ConvertWorker

    class ActionConvert(ActionConvertCallback):
        """Theirs but for its constructor, which gives its base class nothing and raises."""

        def __init__(self, input_dirs, chunk_size):
            self.input_dirs, self.chunk_size = input_dirs, chunk_size

    class ImageKernel(ImageKernelCallback):
        """Theirs but for the end of decoding: streams of PyAV have no `close` any more."""

        def do_decode(self, chunk, **_):
            size = {"width": self.frame_width, "height": self.frame_height}
            with av.open(io.BytesIO(chunk)) as container:
                frames = [frame.reformat(**size) for frame in container.decode(video=0)]
            return np.array([frame.to_ndarray(format="rgb24") for frame in frames])

    # As ConvertManager does in Ray's workers, where what is bypassed would be imported after all.
    Worker = ConvertWorker.__ray_metadata__.modified_class
    for modal, folder, convert in (
        ("action", "actions", ActionConvert),
        ("image", "videos", ImageConvertCallback),
        ("meta_info", "meta_info", MetaInfoConvertCallback),
    ):
        kernel = convert(input_dirs=[str(SOURCE / folder)], chunk_size=CHUNK)
        manager = ConvertManager(str(LMDB / modal), kernel, chunk_size=CHUNK, num_workers=1)
        manager.prepare_tasks()
        progress = SimpleNamespace(update=SimpleNamespace(remote=lambda count: None))
        path = LMDB / modal / "part-1"
        Worker(path, kernel, manager.loaded_episodes, CHUNK, progress).run()
    kernels = KernelManager(
        dataset_dirs=[str(LMDB)],
        modal_kernel_callbacks=[
            ActionKernelCallback(),
            ImageKernel(frame_width=64, frame_height=36),
            MetaInfoKernelCallback(),
        ],
    )
    episodes = {}
    for name, length in kernels.get_episodes_with_length().items():
        read = kernels.read(name, start=0, win_len=length, skip_frame=1)
        episodes[name] = {
            "length": length,
            "buttons": read["agent_action"]["buttons"].ravel().tolist(),
            "camera": read["agent_action"]["camera"].ravel().tolist(),
            "images": list(read["image"].shape),
            "brightness": read["image"].mean(axis=(1, 2, 3)).tolist(),
            "places": [place["x"] for place in read["meta_info"]["player_pos"]],
        }
    report.facts(episodes=episodes)
