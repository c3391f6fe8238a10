"""Reads the published files of the benchmark: LEVEL_FOLDER/NUMBER_NAME.py with Model, get_inputs
and get_init_inputs."""

import importlib.util
import os
import re

import torch

from .problem import Problem


def _module_of(path):
    spec = importlib.util.spec_from_file_location("kernelbench_problem", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _inputs_of(module):
    """Functions that make one input each. The file makes all at once, and in each call anew."""
    made = []

    def nth(i):
        def take():
            if not made:
                made.extend(module.get_inputs())
            value = made[i]
            made[i] = None
            if all(each is None for each in made):
                made.clear()
            return value

        return take

    return [nth(i) for i in range(len(_shapes(module)))]


def _shapes(module):
    """The inputs without their values, so that counting them costs no memory."""
    if not hasattr(torch, "set_default_device"):
        return module.get_inputs()
    torch.set_default_device("meta")
    try:
        return module.get_inputs()
    except Exception:  # a file that looks at values
        torch.set_default_device("cpu")
        return module.get_inputs()
    finally:
        torch.set_default_device("cpu")


def _problem(level, path):
    number, name = re.match(r"(\d+)_(.*)\.py$", os.path.basename(path)).groups()

    def build(_):
        module = _module_of(path)
        return module.Model(*module.get_init_inputs()), _inputs_of(module)

    return Problem(level, int(number), name, build)


def published(folder, levels=(1, 2)):
    """The problems in FOLDER/level1 and so on; in FOLDER itself if it is one level's."""
    found = []
    for level in levels:
        inner = os.path.join(folder, f"level{level}")
        if not os.path.isdir(inner):
            if not os.path.basename(os.path.normpath(folder)).endswith(f"level{level}"):
                continue
            inner = folder
        paths = [name for name in os.listdir(inner) if re.match(r"\d+_.*\.py$", name)]
        found += [_problem(level, os.path.join(inner, name)) for name in paths]
    return sorted(found, key=lambda problem: (problem.level, problem.number))
