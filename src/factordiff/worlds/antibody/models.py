"""The fetched models as experts over the 20 amino acids, through the masked-language-model adapter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from factordiff.errors import CheckpointError, MissingDependency, Unavailable
from factordiff.experts.masked_lm import MaskedLanguageModel
from factordiff.worlds.antibody.sequences import RESIDUES

FETCH = "run `factordiff data fetch antibody` first"


def load_model(folder: Path, device: torch.device | str = "cpu") -> MaskedLanguageModel:
    """The expert of a folder that `fetch` made."""
    try:
        config = json.loads((folder / "config.json").read_text())
    except OSError:
        raise Unavailable(f"{folder.name}: its weights are not in {folder}; {FETCH}") from None
    try:
        model = built(config)
        weights = safetensors.torch.load((folder / "model.safetensors").read_bytes())
        missing, unexpected = model.load_state_dict(weights, strict=False)
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"{folder}: damaged, or of another version ({error}); remove it, and {FETCH}"
        ) from None
    needed = [name for name in missing if name not in TIED]
    if needed or unexpected:
        what = f"{needed[0]} is missing" if needed else f"{unexpected[0]} is not known"
        raise CheckpointError(
            f"{folder}: these weights are not of a {config['class']}: {what}; remove the folder, and {FETCH}"
        )
    return adapted(model.to(device).eval(), config["tokens"])


TIED = ("lm_head.bias", "cls.predictions.bias")  # kept once, under the decoder's name


def built(config: dict[str, Any]) -> Any:
    """A model of the configuration's class, which is one of two."""
    try:
        import transformers
    except ImportError as error:
        raise MissingDependency("transformers: install factordiff[hf] for the world of antibodies") from error
    classes = {
        "RobertaForMaskedLM": (transformers.RobertaForMaskedLM, transformers.RobertaConfig),
        "BertForMaskedLM": (transformers.BertForMaskedLM, transformers.BertConfig),
    }
    if config["class"] not in classes:
        raise CheckpointError(
            f"class: expected one of {', '.join(classes)}, got {config['class']!r}; this folder is not one of ours"
        )
    model, settings = classes[config["class"]]
    with torch.random.fork_rng(devices=[]):  # its first weights are drawn, and then replaced
        return model(settings(**config["model"]))


def adapted(model: Any, tokens: dict[str, Any]) -> MaskedLanguageModel:
    """The model as an expert: value v is the v-th amino acid of the alphabet."""
    first = int(tokens["first"])
    return MaskedLanguageModel(
        model, range(first, first + len(RESIDUES)), int(tokens["mask"]), tokens["prefix"], tokens["suffix"]
    )
