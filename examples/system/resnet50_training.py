"""A program for `atunner system --apply`: ResNet-50 of torchvision on random pictures."""

import torch
from torch.nn import functional as F

autocast = torch.bfloat16


def model():
    from torchvision.models import resnet50

    torch.manual_seed(1)
    return resnet50(weights=None)


def batch(samples):
    generator = torch.Generator().manual_seed(2)
    pictures = torch.randn(samples, 3, 224, 224, generator=generator)
    return pictures, torch.randint(0, 1000, (samples,), generator=generator)


def loss(model, pictures, classes):
    return F.cross_entropy(model(pictures), classes)


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)


def blocks(model):
    return [block for stage in (model.layer1, model.layer2, model.layer3, model.layer4)
            for block in stage]
