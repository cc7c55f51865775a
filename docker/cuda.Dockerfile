# Trains on an NVIDIA GPU; the host needs its driver and the NVIDIA Container Toolkit:
#
#     docker build -f docker/cuda.Dockerfile -t rllib_minestudio:cuda .
#     docker run --rm --gpus all --shm-size=8g -v cows:/home/player/app/results rllib_minestudio:cuda
#
# Ray keeps experience in /dev/shm, of which Docker gives only 64 MB without --shm-size.
# Not built yet: written and linted on a machine without Docker. Please report what is wrong.
FROM python:3.12-slim

RUN useradd --create-home player \
    && install -d -o player -g player /home/player/app /home/player/app/results
WORKDIR /home/player/app

COPY constraints.txt ./
# First PyTorch, which changes least. Its wheels bring CUDA's libraries along: no image of NVIDIA's is needed.
RUN pip install --no-cache-dir "$(grep '^torch==' constraints.txt)"

COPY setup.cfg setup.py pyproject.toml README.md LICENSE /src/
COPY rllib_minestudio /src/rllib_minestudio
COPY tuned_examples /src/tuned_examples
RUN pip install --no-cache-dir -c constraints.txt /src

COPY tuned_examples ./tuned_examples
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER player
CMD ["rllib", "train", "file", "tuned_examples/cow.yaml"]
