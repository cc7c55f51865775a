# Trains the README's first agent without a GPU:
#
#     docker build -f docker/cpu.Dockerfile -t rllib_minestudio:cpu .
#     docker run --rm --shm-size=2g -v cows:/home/player/app/results rllib_minestudio:cpu
#
# Ray keeps experience in /dev/shm, of which Docker gives only 64 MB without --shm-size.
# Not built yet: written and linted on a machine without Docker. Please report what is wrong.
FROM python:3.12-slim

RUN useradd --create-home player \
    && install -d -o player -g player /home/player/app /home/player/app/results
WORKDIR /home/player/app

COPY constraints.txt ./
# First PyTorch, which changes least. Its CPU build saves gigabytes.
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu \
    "$(grep '^torch==' constraints.txt)"

COPY setup.cfg setup.py pyproject.toml README.md LICENSE /src/
COPY rllib_minestudio /src/rllib_minestudio
COPY tuned_examples /src/tuned_examples
RUN pip install --no-cache-dir -c constraints.txt /src

COPY tuned_examples ./tuned_examples
USER player
CMD ["rllib", "train", "file", "tuned_examples/cow.yaml"]
