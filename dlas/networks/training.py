"""Training by pytorch-lightning: deterministic by seed, resumed from a checkpoint after a kill."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
import torch
from pytorch_lightning.plugins.environments import LightningEnvironment
from torch import nn
from torch.optim import lr_scheduler

from dlas.bench.store.replacing import replacing
from dlas.networks.channels_last import channels_last_is_safe
from dlas.networks.forward import run_module
from dlas.networks.objectives import CrossEntropy, Objective
from dlas.networks.recipes import Recipe
from dlas.networks.scoring import accuracy
from dlas.networks.training_batches import derive_seed, seed_torch, training_loader
from dlas.stack import Data, Workspace

CHECKPOINT = "training.ckpt"

AfterStep = Callable[[nn.Module], None]


class Divergence(ArithmeticError):
    """The loss or a weight stopped being a finite number."""


def fit(
    module: nn.Module,
    data: Data,
    recipe: Recipe,
    workspace: Workspace,
    after_step: AfterStep | None = None,
    objective: Objective | None = None,
) -> list[float]:
    """Train ``module`` in place.

    Every epoch ends with a checkpoint in ``workspace.folder``.  Called again
    with the same seed and recipe, on a module of the same structure, training
    resumes from it and ends with exactly the weights of an uninterrupted run:
    the order of the images, their augmentation and dropout follow from the
    seed, the epoch and the number of the batch alone.

    Parameters
    ----------
    module : torch.nn.Module
        Maps images [n, c, h, w] to outputs [n, classes].
    data : Data
        Trained on ``train``; the accuracy on ``validation`` is reported after every epoch.
    after_step : callable, optional
        Called with the module after every step of the optimiser, e.g. to keep weights masked.
    objective : Objective, optional
        What is minimised; by default the cross-entropy.  Parameters that need no gradient are not trained.

    Returns
    -------
    list of float
        Validation accuracy after each epoch.

    Raises
    ------
    Divergence
        If the loss or a weight is not finite at the end of an epoch.
    """
    if channels_last_is_safe(module):  # it trains 1.2 to 1.7 times as fast on CPUs
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    learner = _Learner(module.train(), data, recipe, workspace, after_step, objective or CrossEntropy())
    checkpoint = workspace.folder / CHECKPOINT
    workspace.folder.mkdir(parents=True, exist_ok=True)
    with _quiet_lightning(), torch.random.fork_rng(devices=[]):
        trainer = lightning.Trainer(
            max_epochs=recipe.epochs,
            devices=1,
            callbacks=[_EpochEnd(checkpoint)],
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            deterministic="warn" if torch.cuda.is_available() else None,
            default_root_dir=workspace.folder,
            plugins=[LightningEnvironment()],  # a batch system's job is one process all the same
        )
        resumed = checkpoint if learner.can_resume(checkpoint) else None
        trainer.fit(
            learner, training_loader(data, recipe, workspace.seed), ckpt_path=resumed, weights_only=True
        )
    module.cpu().eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return learner.curve


class _Learner(lightning.LightningModule):
    """The module with its loss, its optimiser and its state in checkpoints."""

    def __init__(
        self,
        module: nn.Module,
        data: Data,
        recipe: Recipe,
        workspace: Workspace,
        after_step: AfterStep | None,
        objective: Objective,
    ) -> None:
        super().__init__()
        self.module = module
        self.data = data
        self.recipe = recipe
        self.workspace = workspace
        self.after_step = after_step
        self.objective = objective
        self.curve: list[float] = []
        images = len(data.train)
        self.identity = {"seed": workspace.seed, "images": images, **asdict(recipe), **objective.identity()}

    def on_train_epoch_start(self) -> None:
        self.total_loss = torch.zeros((), device=self.device)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        seed_torch(derive_seed(self.workspace.seed, self.current_epoch, batch_idx, 1))  # dropout

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], batch_idx: int) -> torch.Tensor:
        images, labels = batch
        loss: torch.Tensor = self.objective(self.module, images, labels)
        self.total_loss += loss.detach()
        return loss

    def configure_optimizers(self) -> Any:
        recipe, steps = self.recipe, int(self.trainer.estimated_stepping_batches)
        optimizer = torch.optim.SGD(
            [parameter for parameter in self.module.parameters() if parameter.requires_grad],
            recipe.learning_rate,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
        )
        if self.after_step:
            after_step = self.after_step
            optimizer.register_step_post_hook(lambda *_: after_step(self.module))
        if recipe.schedule == "constant":
            return optimizer
        schedule: lr_scheduler.LRScheduler
        if recipe.schedule == "cosine":
            schedule = lr_scheduler.CosineAnnealingLR(optimizer, steps)
        elif recipe.schedule == "step":
            every = recipe.step_epochs * steps // recipe.epochs
            schedule = lr_scheduler.StepLR(optimizer, every, recipe.step_factor)
        else:
            schedule = lr_scheduler.OneCycleLR(
                optimizer, recipe.learning_rate, total_steps=steps, cycle_momentum=recipe.cycle_momentum
            )
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]

    def end_epoch(self) -> None:
        """Stop a run that has diverged; record and report the validation accuracy."""
        epoch, loss = self.current_epoch + 1, float(self.total_loss)
        if not math.isfinite(loss):
            raise self._diverged(epoch, f"the loss is {loss}")
        # The last step's weights have no loss yet.
        broken = [name for name, value in self.module.state_dict().items() if not value.isfinite().all()]
        if broken:
            raise self._diverged(epoch, f"{broken[0]} holds a number that is not finite")
        right = accuracy(lambda images: run_module(self.module, images), self.data.validation)
        self.curve.append(right)
        self.workspace.say(f"epoch {epoch} of {self.recipe.epochs}, validation accuracy {right:.1%}")

    def _diverged(self, epoch: int, what: str) -> Divergence:
        rate = f"learning rate {self.recipe.learning_rate:g}"
        return Divergence(f"training diverged: {what} in epoch {epoch} of {self.recipe.epochs} with {rate}")

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["identity"], checkpoint["curve"] = self.identity, self.curve

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.curve = list(checkpoint["curve"])

    def can_resume(self, checkpoint: Path) -> bool:
        """Return whether the checkpoint exists, is undamaged and belongs to this training."""
        if not checkpoint.exists():
            return False
        try:
            state = torch.load(checkpoint, map_location="cpu", weights_only=True)
            same_shapes = _shapes(state["state_dict"]) == _shapes(self.state_dict())
            same = state["identity"] == self.identity and same_shapes
        except Exception:  # torch raises many kinds on a damaged file
            same = False
        if not same:
            self.workspace.say(f"{checkpoint} is damaged or of another training: starting anew")
        return same


class _EpochEnd(lightning.callbacks.Checkpoint):
    """Ends an epoch; as a checkpoint callback it runs after all others."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint

    def on_train_epoch_end(self, trainer: lightning.Trainer, learner: lightning.LightningModule) -> None:
        assert isinstance(learner, _Learner)
        learner.end_epoch()
        with replacing(self.checkpoint) as partial:  # a kill leaves the old checkpoint or the new one
            trainer.save_checkpoint(partial)


def _shapes(state: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    """Return the shape of each tensor."""
    return {name: tensor.shape for name, tensor in state.items()}


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """Suppress Lightning's notices and warnings; errors are still shown."""
    names = [name for name in logging.root.manager.loggerDict if "lightning" in name]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
