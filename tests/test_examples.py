"""The examples of experts of one's own run, and together they beat each alone."""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from factordiff import MaskedLanguageModel
from factordiff.errors import InvalidInput

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "lookup_table",
        "torch_module",
        "masked_language_model",
    }


def test_a_lookup_table() -> None:
    right = example("lookup_table").main()
    assert right["together"] == 8
    assert max(right["first half"], right["second half"]) < 8


def test_a_torch_module() -> None:
    right = example("torch_module").main()
    assert right["together"] > 0.8
    # A picture has 18 cells that an expert never learned: alone it is right by luck only.
    assert max(right["upper"], right["lower"]) < 0.05


def test_a_hugging_face_masked_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the example asks another machine for something")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    right = example("masked_language_model").main()
    assert right["together"] > 0.9
    assert max(right["subjects"], right["predicates"]) < 0.05


class Recorder:
    """A stand-in for a model: remembers what it was shown, prefers token 7."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def __call__(self, input_ids: torch.Tensor) -> object:
        self.seen = input_ids.tolist()
        logits = torch.zeros(*input_ids.shape, 9)
        logits[..., 7] = 2.0
        logits[..., 0] = 50.0  # a token that is no value must not matter
        return type("Output", (), {"logits": logits + torch.arange(input_ids.shape[1])[None, :, None]})()


def test_a_language_model_sees_its_own_tokens_between_prefix_and_suffix() -> None:
    model = Recorder()
    expert = MaskedLanguageModel(model, tokens=[5, 7], mask_token=3, prefix=[1], suffix=[2, 2])
    said = expert.log_probs(torch.tensor([[0, 2, 1]]), None)
    assert model.seen == [[1, 5, 3, 7, 2, 2]]
    assert said.shape == (1, 3, 2)
    assert torch.allclose(said.exp().sum(-1), torch.ones(1, 3))
    assert (said.argmax(-1) == 1).all()


def test_a_language_models_prompt_comes_before_the_cells() -> None:
    model = Recorder()
    expert = MaskedLanguageModel(model, tokens=[5, 7], mask_token=3, prefix=[1], suffix=[2])
    prompt = torch.tensor([[8, 8]])
    expert.log_probs(torch.tensor([[2]]), expert.encode(prompt))
    assert model.seen == [[1, 8, 8, 3, 2]]


def test_a_language_model_needs_distinct_tokens() -> None:
    for tokens in ([5, 5], [5, 3]):
        with pytest.raises(InvalidInput, match="tokens: expected distinct ids"):
            MaskedLanguageModel(Recorder(), tokens=tokens, mask_token=3)
    with pytest.raises(InvalidInput) as refused:
        MaskedLanguageModel(Recorder(), tokens=range(30_000), mask_token=3)
    assert len(str(refused.value)) < 200
