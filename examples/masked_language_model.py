"""Hugging Face masked language models as experts: two tiny ones, each fluent in half of a language.

A sentence is a subject phrase and a predicate phrase of six words each, out of eight that exist of either kind. One
model was trained on sentences whose predicate is noise, the other on sentences whose subject is. Given the first word
of each phrase, they write the rest together, position by position. Needs factordiff[hf]; nothing is downloaded.

python examples/masked_language_model.py
"""

from __future__ import annotations

import torch
from torch import Tensor

from factordiff import MaskedLanguageModel, Team, compose

WORDS, PHRASES, LENGTH = 24, 8, 6  # words of the language, phrases of each kind, words in a phrase
MASK_TOKEN, CLS, SEP = 0, 1, 2  # the models' special tokens; word w is token 3 + w
FIRST_WORD = 3


def phrase_book() -> tuple[Tensor, Tensor]:
    """All subjects and all predicates; the first words of each kind are distinct."""
    generator = torch.Generator().manual_seed(0)
    books = torch.randint(WORDS, (2, PHRASES, LENGTH), generator=generator)
    books[:, :, 0] = torch.stack([torch.randperm(WORDS, generator=generator)[:PHRASES] for _ in range(2)])
    return books[0], books[1]


def sentences(count: int, generator: torch.Generator, noisy: str = "") -> Tensor:
    """Sentences of the language; one phrase may be noise."""
    parts = []
    for kind, book in zip(("subject", "predicate"), phrase_book(), strict=True):
        chosen = book[torch.randint(PHRASES, (count,), generator=generator)]
        noise = torch.randint(WORDS, (count, LENGTH), generator=generator)
        parts.append(noise if kind == noisy else chosen)
    return torch.cat(parts, dim=1)


def trained(noisy: str, seed: int, steps: int = 400) -> MaskedLanguageModel:
    """A tiny BERT, trained as BERTs are: hide some words, predict them."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=FIRST_WORD + WORDS,
        hidden_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=2 * LENGTH + 2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForMaskedLM(config)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(steps):
        tokens = FIRST_WORD + sentences(64, generator, noisy)
        ends = [torch.full((len(tokens), 1), end) for end in (CLS, SEP)]
        hidden = torch.rand(tokens.shape, generator=generator) < torch.rand(
            len(tokens), 1, generator=generator
        )
        shown = torch.cat([ends[0], torch.where(hidden, MASK_TOKEN, tokens), ends[1]], dim=1)
        logits = model(input_ids=shown).logits[:, 1:-1]
        loss = torch.nn.functional.cross_entropy(logits[hidden], tokens[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    words = range(FIRST_WORD, FIRST_WORD + WORDS)
    return MaskedLanguageModel(model.eval(), words, MASK_TOKEN, prefix=[CLS], suffix=[SEP])


def exact(team: Team, count: int = 200) -> float:
    """The share of sentences that are right in every word, given the first word of each phrase."""
    truth = sentences(count, torch.Generator().manual_seed(9))
    asked = torch.full_like(truth, WORDS)
    asked[:, [0, LENGTH]] = truth[:, [0, LENGTH]]
    return float((team.sample(asked).x_0 == truth).all(-1).double().mean())


def main() -> dict[str, float]:
    """Train both and measure each alone and together."""
    team = compose({"subjects": trained("predicate", 1), "predicates": trained("subject", 2)})
    return {"subjects": exact(team.alone(0)), "predicates": exact(team.alone(1)), "together": exact(team)}


if __name__ == "__main__":
    torch.set_num_threads(1)  # tiny tensors: more threads only get in each other's way
    for name, share in main().items():
        print(f"{name}: {100 * share:.1f} % of the sentences right")
