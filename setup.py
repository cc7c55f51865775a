"""Adds the folder of experiment files to the packages that setup.cfg describes."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["rllib_minestudio*"]), "rllib_minestudio.tuned_examples"])
