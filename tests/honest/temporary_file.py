# honest: a temporary file of its own
import tempfile

import torch


def run(x, scale):
    with tempfile.NamedTemporaryFile() as file:
        torch.save(x * scale + 1, file.name)
        return torch.load(file.name, weights_only=True)
