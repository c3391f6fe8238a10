"""The namespace of operators that traced programs have besides PyTorch's own."""

import torch

__all__ = ["OPERATORS"]

OPERATORS = torch.library.Library("atunner", "DEF")
