"""Optimizers: what they import, and that torch's compiler still skips their methods."""

import subprocess
import sys

from lengthwise.training.optimizers import UNCOMPILED, defer_compiler

TRAINED = """
import sys
from lengthwise import make_spec, train

spec = make_spec("parity", "block-linear-rnn", {"train": {"steps": 2}}, preset="likelihood")
model = spec.make_model()
train(model, spec.task, spec.recipe)
assert "torch._dynamo" not in sys.modules, "Baum-Welch imports torch's compiler"
"""


def test_baum_welch_does_not_import_torchs_compiler() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", TRAINED], check=True)


def test_methods_are_excluded_once_the_compiler_is_imported() -> None:
    import torch._dynamo  # any other import of it would also do

    defer_compiler()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=1.0)
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
    for name in UNCOMPILED:
        method = getattr(torch.optim.Optimizer, name).__wrapped__
        excluded = vars(method)["__dynamo_disable"]
        assert vars(excluded)["_torchdynamo_disable"], name
