"""The work of the other processes while the first process executes a run."""

from pathlib import Path

import torch

from lengthwise.devices import one_thread
from lengthwise.evaluation.probe import PROBE_EVERY
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.placement import Placement, check_ranks_of
from lengthwise.runs.result import takes_probes
from lengthwise.runs.signals import StopRequested
from lengthwise.runs.spec import RunSpec
from lengthwise.training.checkpoint import gathered_tensors, load_checkpoint
from lengthwise.training.loop import training_steps
from lengthwise.training.ranks import Ranks


def train_along(
    spec: RunSpec, root: str | Path, stop_requested: StopRequested, *, device: torch.device, ranks: Ranks
) -> None:
    """Train `spec` together with the process that executes it, and write nothing.

    The function returns when training ends or when any process requests a stop, which the first process then reports.

    Raises:
        ValueError: these processes cannot train the run together, or do not see the same folder.
        RankEnded: another process has ended earlier.
        Diverged: the loss is not finite; all processes see the same loss.
    """
    check_ranks_of(spec, ranks)
    placement, folder = Placement(device, ranks), RunFolder(Path(root) / spec.id)
    probes = takes_probes(spec)
    with one_thread():
        if not ranks.any(False):  # only the first process knows whether there is something to train
            return
        state = placement.state(spec)
        if folder.checkpoint.exists():
            load_checkpoint(state, folder.checkpoint, spec.id)
        # On disks that are not shared, some processes would begin at step 0 while others resume.
        placement.check_is_shared(state, folder.path)
        for step in training_steps(state, spec.task, spec.recipe, seed=spec.seed):
            # All processes gather sharded weights together, so this loop has to gather at the same steps as `execute`.
            if probes and step.step % PROBE_EVERY == 0:
                with placement.final_model(state, spec):
                    pass
            if step.step % spec.recipe.checkpoint_every == 0:
                gathered_tensors(state, folder.path)
            # All processes have to stop at the same step. Otherwise a process that trains on would wait for the others
            # indefinitely.
            if ranks.any(stop_requested()):
                break
        gathered_tensors(state, folder.path)
