"""Shared set-up of the tests: one torch thread, and hypothesis without deadlines (a busy machine is no failure)."""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("lengthwise", deadline=None, derandomize=True)
settings.load_profile("lengthwise")
