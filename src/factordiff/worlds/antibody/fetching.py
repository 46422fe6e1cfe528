"""The two published models out of their wheels: downloaded by pip, checked by hash, never imported.

`sapiens` demands packages that do not go with this one, so no extra can list it. Its wheel and that of `antiberty` hold
the weights; later releases dropped them, hence the pins. The checkpoints are pickles: they are read with
`weights_only=True`, once, and kept as safetensors.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from factordiff.errors import CheckpointError, DataError, Unavailable
from factordiff.files import write_whole

FOLDER = "FACTORDIFF_DATA"  # the environment's word on where fetched things go


@dataclass(frozen=True)
class Wheel:
    """A pinned wheel, its hash, and the checkpoint in it."""

    package: str
    version: str
    sha256: str
    member: str
    licence: str


WHEELS = {
    "sapiens": Wheel(
        "sapiens",
        "1.0.5",
        "af1a8d445e9d7ab9f5f04512cf325acdfd9dd0930eb957b63ec234df1f141a8b",
        "sapiens/models/v1/checkpoint_vh.pt",
        "MIT",
    ),
    "antiberty": Wheel(
        "antiberty",
        "0.1.3",
        "30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a",
        "antiberty/trained_models/AntiBERTy_md_smooth/pytorch_model.bin",
        "MIT",
    ),
}


def data_folder() -> Path:
    """Where fetched things are kept: $FACTORDIFF_DATA, or the user's cache."""
    given = os.environ.get(FOLDER)
    return Path(given) if given else Path.home() / ".cache" / "factordiff"


def model_folder(name: str) -> Path:
    """Where a fetched model is kept."""
    return data_folder() / "antibody" / name


def fetch(say: Callable[[str], None] = lambda line: None) -> list[Path]:
    """Download both wheels, check them, and keep their weights; what is there already is left alone."""
    folders = []
    for name, wheel in WHEELS.items():
        folder = model_folder(name)
        folders.append(folder)
        if (folder / "config.json").is_file():
            say(f"{name}: already in {folder}")
            continue
        say(f"{name}: downloading {wheel.package} {wheel.version}")
        with tempfile.TemporaryDirectory() as scratch:
            weights = checkpoint(downloaded(wheel, Path(scratch)), wheel)
        keep(folder, CONVERTED[name](weights), CONFIGS[name], wheel)
        say(f"{name}: {folder}")
    return folders


def downloaded(wheel: Wheel, folder: Path) -> Path:
    """The wheel, by pip and without its dependencies; another one than expected is refused."""
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--only-binary", ":all:", "--dest", str(folder), f"{wheel.package}=={wheel.version}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    found = sorted(folder.glob("*.whl"))
    if done.returncode or not found:
        last = (done.stderr.strip().splitlines() or ["no file came"])[-1]
        raise Unavailable(
            f"{wheel.package}=={wheel.version}: pip could not download it ({last}); check the network, and try again"
        )
    checked(found[0], wheel)
    return found[0]


def checked(path: Path, wheel: Wheel) -> None:
    """Refuse a file that is not the one that was pinned."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise DataError(
            f"{path.name}: expected sha256 {wheel.sha256}, got {found}; this is not the file that was measured, "
            "nothing was kept"
        )


def checkpoint(path: Path, wheel: Wheel) -> Any:
    """What the checkpoint in a wheel holds, read without running anything in it."""
    try:
        data = io.BytesIO(zipfile.ZipFile(path).read(wheel.member))
        with torch.serialization.safe_globals([argparse.Namespace]):  # what sapiens keeps its settings in
            return torch.load(data, map_location="cpu", weights_only=True)
    except KeyError:
        raise DataError(f"{path.name}: there is no {wheel.member} in it") from None
    except Exception as error:
        raise CheckpointError(
            f"{path.name}: {wheel.member} cannot be read as weights alone ({error})"
        ) from None


def keep(folder: Path, weights: Mapping[str, Tensor], config: Mapping[str, Any], wheel: Wheel) -> None:
    """Weights and configuration in a folder; the configuration comes last."""
    said = {**config, "source": f"{wheel.package}=={wheel.version}", "license": wheel.licence}
    own = {name: weight.detach().clone().contiguous() for name, weight in weights.items()}  # tied ones too
    write_whole(folder / "model.safetensors", safetensors.torch.save(own, {"format": "pt"}))
    write_whole(folder / "config.json", (json.dumps(said, indent=2) + "\n").encode())


def roberta_weights(checkpoint: Any) -> dict[str, Tensor]:
    """Fairseq's names of a RoBERTa as transformers has them."""
    try:
        own: Mapping[str, Tensor] = checkpoint["model"]
    except (TypeError, KeyError):
        raise CheckpointError(
            "sapiens: expected a checkpoint of fairseq with 'model', got something else"
        ) from None
    renamed = {}
    for name, weight in own.items():
        for old, new in ROBERTA_NAMES:
            name = name.replace(old, new)
        renamed[name] = weight
    width = renamed["roberta.embeddings.word_embeddings.weight"].shape[1]
    renamed["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, width)
    renamed["lm_head.decoder.bias"] = renamed["lm_head.bias"]
    return renamed


def bert_weights(checkpoint: Any) -> dict[str, Tensor]:
    """AntiBERTy's weights without the heads that classify species, chain and graft."""
    other = ("cls.species.", "cls.chain.", "cls.graft.", "bert.pooler.", "bert.embeddings.position_ids")
    if not isinstance(checkpoint, Mapping):
        raise CheckpointError(f"antiberty: expected weights by name, got a {type(checkpoint).__name__}")
    return {name: weight for name, weight in checkpoint.items() if not name.startswith(other)}


ROBERTA_NAMES = (
    ("decoder.sentence_encoder.embed_tokens", "roberta.embeddings.word_embeddings"),
    ("decoder.sentence_encoder.embed_positions", "roberta.embeddings.position_embeddings"),
    ("decoder.sentence_encoder.emb_layer_norm", "roberta.embeddings.LayerNorm"),
    ("decoder.sentence_encoder.layers", "roberta.encoder.layer"),
    ("decoder.lm_head.weight", "lm_head.decoder.weight"),
    ("decoder.lm_head", "lm_head"),
    ("self_attn.q_proj", "attention.self.query"),
    ("self_attn.k_proj", "attention.self.key"),
    ("self_attn.v_proj", "attention.self.value"),
    ("self_attn.out_proj", "attention.output.dense"),
    ("self_attn_layer_norm", "attention.output.LayerNorm"),
    ("fc1", "intermediate.dense"),
    ("fc2", "output.dense"),
    ("final_layer_norm", "output.LayerNorm"),
)
CONVERTED: dict[str, Callable[[Any], dict[str, Tensor]]] = {
    "sapiens": roberta_weights,
    "antiberty": bert_weights,
}
# The id of A; the other residues follow in the order of the alphabet.
RESIDUE_TOKENS = {"sapiens": 4, "antiberty": 5}
CONFIGS: dict[str, dict[str, Any]] = {
    "sapiens": {
        "class": "RobertaForMaskedLM",
        "model": {
            "vocab_size": 25, "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 8,
            "intermediate_size": 256, "max_position_embeddings": 146, "pad_token_id": 1, "bos_token_id": 0,
            "eos_token_id": 2, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
        },
        "tokens": {"first": RESIDUE_TOKENS["sapiens"], "mask": 24, "prefix": [0], "suffix": [2]},
        "longest": 142,
    },
    "antiberty": {
        "class": "BertForMaskedLM",
        "model": {
            "vocab_size": 25, "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8,
            "intermediate_size": 2048, "max_position_embeddings": 512, "pad_token_id": 0, "type_vocab_size": 2,
            "layer_norm_eps": 1e-12, "hidden_act": "gelu",
        },
        "tokens": {"first": RESIDUE_TOKENS["antiberty"], "mask": 4, "prefix": [2], "suffix": [3]},
        "longest": 510,
    },
}  # fmt: skip
