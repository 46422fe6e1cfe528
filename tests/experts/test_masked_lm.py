"""Hugging Face models as experts: what they are shown, what is read of them, what is refused."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from factordiff import ByBlock, Engine, MaskedLanguageModel, Mixture, compare, compose, of_adapters, sample
from factordiff.composition.single import Single
from factordiff.errors import InvalidInput
from tests.experts.language import CLS, MASK, PAD, SEP, VOCABULARY, Tokenizer, tiny
from tests.ledger import Ledger, waits

FAMILIES = ("Bert", "Roberta", "ModernBert", "Esm")
CELLS = torch.tensor([[7, VOCABULARY, 9, VOCABULARY, 11], [VOCABULARY, 8, VOCABULARY, 12, 13]])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_the_family_says_what_it_says_alone(family: str) -> None:
    model = tiny(family)
    expert = MaskedLanguageModel(
        model, mask_token=MASK, prefix=[CLS], suffix=[SEP], suppressed=[CLS, PAD, SEP]
    )
    assert expert.vocabulary.size == VOCABULARY
    ids = torch.where(CELLS == VOCABULARY, MASK, CELLS)
    ends = [torch.full((2, 1), end) for end in (CLS, SEP)]
    logits = model(input_ids=torch.cat([ends[0], ids, ends[1]], 1)).logits[:, 1:-1].detach().clone()
    logits[..., [CLS, PAD, SEP, MASK]] = -torch.inf
    said = expert.log_probs(CELLS, None)
    assert torch.allclose(said, torch.log_softmax(logits, -1), atol=1e-5)
    # Asked at some cells, the output layer is computed there alone, and says the same.
    asked, seen = CELLS == VOCABULARY, []
    handle = model.get_output_embeddings().register_forward_hook(lambda _, given, out: seen.append(out.shape))
    assert torch.allclose(expert.log_probs_at(CELLS, None, asked), said[asked], atol=1e-5)
    handle.remove()
    assert seen == [(4, VOCABULARY)]
    filled = compose([expert, expert]).sample(CELLS).x_0
    assert torch.equal(filled[CELLS != VOCABULARY], CELLS[CELLS != VOCABULARY])
    assert not torch.isin(filled, torch.tensor([CLS, PAD, SEP, MASK])).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prompt_that_is_padded_on_the_left_counts_from_its_first_token(family: str) -> None:
    expert = MaskedLanguageModel(tiny(family), mask_token=MASK)
    alone = expert.log_probs(CELLS[:1], torch.tensor([[20, 21]]))
    padded = {"input_ids": torch.tensor([[PAD, PAD, 20, 21]]), "attention_mask": torch.tensor([[0, 0, 1, 1]])}
    assert torch.allclose(expert.log_probs(CELLS[:1], expert.encode(padded)), alone, atol=1e-4)
    without = expert.log_probs(CELLS[:1], padded["input_ids"])
    assert not torch.allclose(without, alone, atol=1e-3)  # padding that is not masked is read


class Shifted(nn.Module):
    """A stand-in for Dream: logits at a position speak of the next; each prefers ten more than the token it is at."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(vocab_size=VOCABULARY, mask_token_id=MASK, model_type="next")
        self.seen: dict[str, Tensor] = {}

    def forward(self, input_ids: Tensor, **others: Tensor) -> Any:
        self.seen = {"input_ids": input_ids, **others}
        return SimpleNamespace(
            logits=9.0 * nn.functional.one_hot((input_ids + 10) % VOCABULARY, VOCABULARY).float()
        )


def test_shifted_logits_are_read_one_position_earlier() -> None:
    expert = MaskedLanguageModel(Shifted(), shifted=True)
    prompt = torch.tensor([[25], [26]])
    said = expert.log_probs(CELLS, prompt)
    assert said.argmax(-1).tolist() == [[35, 17, 14, 19, 14], [36, 14, 18, 14, 22]]
    # Without anything before the cells the first position speaks of itself too, as Dream's own sampler has it.
    assert expert.log_probs(CELLS, None).argmax(-1).tolist() == [[17, 17, 14, 19, 14], [14, 14, 18, 14, 22]]
    asked = torch.tensor([[True, False, True, False, False], [False, True, False, False, True]])
    for given in (prompt, None):
        assert torch.equal(expert.log_probs_at(CELLS, given, asked), expert.log_probs(CELLS, given)[asked])


PADDED = {
    "input_ids": torch.tensor([[PAD, 20, 21], [22, 23, 24]]),
    "attention_mask": torch.tensor([[0, 1, 1], [1, 1, 1]]),
}


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("prompt", [PADDED["input_ids"], PADDED], ids=["ids", "padded"])
def test_a_model_that_reads_from_left_to_right_keeps_its_prompt_exactly(shifted: bool, prompt: Any) -> None:
    model = tiny("Llama", kind="CausalLM", num_key_value_heads=1)
    settings: dict[str, Any] = {"mask_token": MASK, "prefix": [CLS], "suffix": [SEP], "shifted": shifted}
    plain = MaskedLanguageModel(model, **settings)
    keeping = MaskedLanguageModel(model, **settings, prompt_cache=True)
    encoded, seen = keeping.encode(prompt), []
    model.get_input_embeddings().register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[1]))
    for asked in (CELLS == VOCABULARY, torch.ones_like(CELLS, dtype=torch.bool)):
        expected = plain.log_probs_at(CELLS, prompt, asked)
        for _ in range(2):  # what was kept is not used up
            assert torch.allclose(keeping.log_probs_at(CELLS, encoded, asked), expected, atol=1e-5)
    assert (
        seen == [10, 6 + shifted, 6 + shifted] * 2
    )  # prefix and prompt are read once; shifted, its last token again
    # In a loop whose items come and go.
    for engine in (Engine(), Engine(batch=1)):
        texts = [
            engine.sample([one, one], Mixture(), CELLS, prompt, reveal=ByBlock(2, 2)).x_0
            for one in (plain, keeping)
        ]
        assert torch.equal(*texts)


class BothWays(nn.Module):
    """Attention in both directions, as diffusion models have it; keys and values are kept in tuples."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.config = SimpleNamespace(vocab_size=VOCABULARY, mask_token_id=MASK, model_type="llada")
        self.embed, *self.weights = (
            torch.randn(size, 8, generator=generator) for size in (VOCABULARY, *[8] * layers)
        )

    def forward(self, input_ids: Tensor, past_key_values: Any = None, use_cache: bool = False) -> Any:
        h, kept = self.embed[input_ids], []
        for layer, weights in enumerate(self.weights):
            keys = values = h @ weights
            if past_key_values is not None:
                keys, values = (torch.cat([old, keys], 1) for old in past_key_values[layer])
            kept.append((keys, values))
            h = h + torch.softmax(h @ keys.transpose(1, 2) / 32, -1) @ values
        return SimpleNamespace(
            logits=h @ self.embed.T / 4, past_key_values=tuple(kept) if use_cache else None
        )


def test_where_attention_goes_both_ways_a_kept_prompt_is_an_approximation() -> None:
    prompt = torch.tensor([[20, 21], [22, 23]])
    off = []
    for layers in (1, 2):
        plain, keeping = (MaskedLanguageModel(BothWays(layers), prompt_cache=kept) for kept in (False, True))
        said, rough = (one.log_probs(CELLS, one.encode(prompt)).exp() for one in (plain, keeping))
        off.append(float((said - rough).abs().sum(-1).max() / 2))
    assert off[0] < 1e-5  # keys and values of a first layer know nothing but their own token
    assert off[1] > 1e-3
    # What it costs is measured as anything is: both are experts.
    truth = torch.where(CELLS == VOCABULARY, 9, CELLS)
    table = compare({"plain": plain, "keeping": keeping}, "alone", (CELLS, truth, prompt), "nats")
    assert table["plain"].value(table.main) != table["keeping"].value(table.main)


def test_what_cannot_be_kept_is_refused_or_read_anew() -> None:
    expert = MaskedLanguageModel(tiny("Bert"), mask_token=MASK, prompt_cache=True)
    with pytest.raises(
        InvalidInput, match="prompt_cache: BertForMaskedLM returns no past_key_values, so nothing"
    ):
        expert.encode(torch.tensor([[20, 21]]))
    assert expert.encode(None) is None  # without a prompt there is nothing to keep
    one = torch.tensor([[20]])
    assert MaskedLanguageModel(Shifted(), shifted=True, prompt_cache=True).encode(one) is one


@pytest.mark.parametrize("shifted", [False, True])
def test_nothing_waits_for_the_model(shifted: bool) -> None:
    expert = MaskedLanguageModel(
        tiny("Bert"),
        mask_token=MASK,
        suppressed=[CLS],
        prefix=[] if shifted else [CLS],
        end=SEP,
        shifted=shifted,
    )
    ledger, asked = Ledger(), CELLS == VOCABULARY
    expert.log_probs_at(CELLS, None, asked)  # what is copied to the device once is there
    expert.model.register_forward_pre_hook(lambda *_: ledger.entries.append("pass"))
    with ledger:
        found = expert.log_probs_at(CELLS, None, asked)
    before, after = ledger.sides()
    assert waits(after) == []
    assert len(waits(before)) == 1
    # Told which cells by their numbers, it need not look them up.
    places = asked.flatten().nonzero().squeeze(-1)
    ledger.entries.clear()
    with ledger:
        by_places = expert.log_probs_at_places(CELLS, None, places)
    assert "pass" in ledger.entries
    assert waits(ledger.entries) == []
    assert torch.equal(by_places, found)


def test_positions_and_padding_are_told_to_the_model() -> None:
    model = Shifted()
    expert = MaskedLanguageModel(model, prefix=[3], suffix=[2])
    padded = {
        "input_ids": torch.tensor([[PAD, 20], [21, 22]]),
        "attention_mask": torch.tensor([[0, 1], [1, 1]]),
    }
    expert.log_probs(CELLS[:, :2], padded)
    assert model.seen["input_ids"].tolist() == [[3, PAD, 20, 7, MASK, 2], [3, 21, 22, MASK, 8, 2]]
    assert model.seen["attention_mask"].tolist() == [[1, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]
    assert model.seen["position_ids"].tolist() == [[0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]]


def test_after_the_end_of_a_text_there_is_nothing_else() -> None:
    expert = MaskedLanguageModel(tiny("Bert"), mask_token=MASK, end=SEP)
    x_t = torch.tensor([[7, SEP, VOCABULARY, VOCABULARY], [VOCABULARY, SEP, VOCABULARY, 9]])
    said = expert.log_probs(x_t, None).exp()
    assert said[0, 2:, SEP].tolist() == [1.0, 1.0]
    assert float(said[1, 2, SEP]) < 1  # what comes before its end is not known yet
    assert float(said[0, 0, SEP]) > 0  # it is a word like others


def test_a_tokenizer_tells_the_mask_and_what_is_never_emitted() -> None:
    words = {f"w{token}": token for token in range(VOCABULARY)}
    expert = MaskedLanguageModel(tiny("Bert"), tokenizer=Tokenizer(words, [CLS, PAD, SEP, MASK]), end=SEP)
    assert expert.mask_token == MASK
    said = expert.log_probs(CELLS, None)[0, 1]
    assert [token for token in range(VOCABULARY) if said[token] == -torch.inf] == [CLS, PAD, MASK]
    few = MaskedLanguageModel(tiny("Bert"), [CLS, 7, 8], tokenizer=Tokenizer(words, [CLS, PAD, SEP, MASK]))
    assert (
        few.log_probs(torch.tensor([[3, 1]]), None).isfinite().all()
    )  # a special token that was asked for is a value


def test_models_of_different_tokenizers_are_refused() -> None:
    words = {f"w{token}": token for token in range(VOCABULARY)}
    other = {**words, "w7": 8, "w8": 7}
    same, also, unlike = (
        MaskedLanguageModel(tiny("Bert"), tokenizer=Tokenizer(w, [])) for w in (words, dict(words), other)
    )
    compose([same, also])
    with pytest.raises(
        InvalidInput, match=r"numbers 1 and 2 have different tokenizers \(token 7 is 'w7' and 'w8'\)"
    ):
        compose([same, unlike])
    with pytest.raises(InvalidInput, match="different tokenizers"):
        sample([same, unlike], Single(), CELLS)


def adapted() -> Any:
    import peft

    settings = peft.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = peft.get_peft_model(tiny("Bert"), settings, adapter_name="law")
        model.add_adapter("verse", settings)
    return model.eval()


def test_adapters_over_one_base_are_experts_of_one_copy() -> None:
    model = adapted()
    experts = of_adapters(model, ["law", "verse", ""], mask_token=MASK)
    assert list(experts) == ["law", "verse", "base"]
    assert all(expert.model is model for expert in experts.values())
    said = {name: expert.log_probs(CELLS, None) for name, expert in experts.items()}
    base = MaskedLanguageModel(tiny("Bert"), mask_token=MASK).log_probs(CELLS, None)
    assert torch.allclose(said["base"], base, atol=1e-5)
    assert not torch.allclose(said["law"], base, atol=1e-2)
    assert not torch.allclose(said["law"], said["verse"], atol=1e-2)
    # Whoever spoke last, each says the same again.
    for name in ("verse", "base", "law"):
        assert torch.equal(experts[name].log_probs(CELLS, None), said[name])
    team = compose(experts)
    assert (team.sample(CELLS).x_0 < VOCABULARY).all()
    assert list(of_adapters(model, mask_token=MASK)) == ["law", "verse"]
    assert repr(experts["law"]) == "MaskedLanguageModel(PeftModel, 40 values, adapter 'law')"


def weight_bytes(models: Any) -> int:
    """The memory of all weights and buffers together, each piece counted once."""
    pieces = [part.untyped_storage() for one in models for part in (*one.parameters(), *one.buffers())]
    return sum({piece.data_ptr(): piece.nbytes() for piece in pieces}.values())


def test_adapters_take_the_memory_of_one_base_and_their_own() -> None:
    base, model = weight_bytes([tiny("Bert")]), adapted()
    team = compose(of_adapters(model, ["law", "verse", ""], mask_token=MASK))
    team.sample(CELLS)
    team.as_model()(CELLS.clamp(max=VOCABULARY - 1))
    held = weight_bytes([expert.model for expert in team.experts])  # type: ignore[attr-defined]
    own = sum(part.nbytes for name, part in model.named_parameters() if "lora_" in name)
    assert 0 < own < base / 2
    assert held == base + own
    assert weight_bytes([tiny("Bert"), tiny("Bert")]) == 2 * base


@pytest.mark.usefixtures("untyped")
def test_bad_input_is_refused_with_a_sentence() -> None:
    model = tiny("Bert")
    with pytest.raises(
        InvalidInput, match="mask_token: neither the tokenizer nor the model's config names one"
    ):
        MaskedLanguageModel(model)
    with pytest.raises(InvalidInput, match="tokens: the model's config has no vocab_size; give the ids"):
        MaskedLanguageModel(lambda **_: None, mask_token=1)
    with pytest.raises(InvalidInput, match="end: expected the id of one of the tokens, got 99"):
        MaskedLanguageModel(model, mask_token=MASK, end=99)
    with pytest.raises(InvalidInput, match=r"adapter: expected one of the model's \(none\), got 'law'"):
        MaskedLanguageModel(model, mask_token=MASK, adapter="law")
    expert = MaskedLanguageModel(model, mask_token=MASK)
    with pytest.raises(
        InvalidInput, match=r"x_t: 35 positions, with prompt .* but the model has 34; use fewer"
    ):
        expert.log_probs(torch.full((1, 30), 7), torch.full((1, 5), 7))
    with pytest.raises(
        InvalidInput, match="condition: expected prompt ids, or a dict of input_ids and attention_mask"
    ):
        expert.encode({"input_ids": CELLS})
    # RoBERTa counts its positions from behind the padding token: two of them are not usable.
    with pytest.raises(InvalidInput, match=r"x_t: 33 positions, .* but the model has 32"):
        MaskedLanguageModel(tiny("Roberta"), mask_token=MASK).log_probs(torch.full((1, 33), 7), None)
    with pytest.raises(
        InvalidInput, match="experts: expected one vocabulary for all, got vocabularies of sizes"
    ):
        compose([expert, MaskedLanguageModel(tiny("Bert", vocab_size=41), mask_token=MASK)])


class Wrong(Shifted):
    """Returns logits of a wrong shape, or none at all."""

    def __init__(self, what: Any) -> None:
        super().__init__()
        self.what = what

    def forward(self, input_ids: Tensor, **others: Tensor) -> Any:
        return SimpleNamespace(logits=self.what(super().forward(input_ids).logits))


@pytest.mark.usefixtures("untyped")
def test_logits_that_are_none_are_refused() -> None:
    for what, sentence in (
        (
            lambda logits: logits[:, 1:],
            r"model: expected logits of shape \(2, 5, token\), .* got \(2, 4, 40\)",
        ),
        (
            lambda logits: logits[..., :-1],
            "model: expected logits for ids up to 39 at 10 positions, got shape",
        ),
        (lambda logits: logits.sum(-1), "model: expected logits for ids up to 39"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            MaskedLanguageModel(Wrong(what)).log_probs(CELLS, None)
    with pytest.raises(InvalidInput, match="those of expert 1 contain NaN"):
        compose([MaskedLanguageModel(Wrong(lambda logits: logits * torch.nan))]).sample(CELLS)


def test_ids_that_no_word_has_are_never_written() -> None:
    """Models have more ids than their tokenizers have words: LLaDA's 126,464, for one."""
    words = {f"w{number}": number for number in range(30)}
    model = tiny("Bert")
    expert = MaskedLanguageModel(model, tokenizer=Tokenizer(words, [MASK]))
    said = expert.log_probs(CELLS, None)
    assert (said[..., 30:] == -torch.inf).all()
    assert (said[..., :MASK] > -torch.inf).all()
    team = compose([expert])
    assert (team.sample(torch.full((8, 6), VOCABULARY), temperature=1.0).x_0 < 30).all()
    # Whoever says which ids are values has said that they mean something.
    chosen = MaskedLanguageModel(model, [7, 35], tokenizer=Tokenizer(words, [MASK]))
    assert (chosen.log_probs(torch.tensor([[2]]), None) > -torch.inf).all()


def test_cells_that_were_to_be_hidden_are_not_taken_for_given_ones() -> None:
    words = {f"w{number}": number for number in range(30)}
    team = compose([MaskedLanguageModel(tiny("Bert"), tokenizer=Tokenizer(words, [MASK]))])
    ids = torch.tensor([[7, MASK, 9]])
    sentence = r"cells: some hold the id 4, the model's own mask; .* torch.where\(ids == 4, 40, ids\)"
    with pytest.raises(InvalidInput, match=sentence):
        team.sample(ids)
    with pytest.raises(InvalidInput, match=sentence):
        compose([*team.experts, *team.experts]).fit((ids.expand(8, -1),))
    assert (team.sample(torch.where(ids == MASK, VOCABULARY, ids)).x_0 != VOCABULARY).all()
    with pytest.raises(InvalidInput, match="cells: some hold the id 30, which no word of the tokenizer has"):
        team.sample(torch.tensor([[7, 30, 9]]))  # one past the last word is not one past the last id
    # A mask that is no value, since it stands behind the last id, is as good as any.
    behind = MaskedLanguageModel(tiny("Bert", vocab_size=41), range(40), mask_token=40)
    assert (compose([behind]).sample(torch.tensor([[7, 40, 9]])).x_0 < 40).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_of_different_lengths_are_filled_as_each_alone(family: str) -> None:
    mask = VOCABULARY
    settings: dict[str, Any] = {"mask_token": MASK, "suppressed": [PAD]}
    short, long = [7, mask, 9], [mask, 8, mask, 12, 13]
    together = torch.tensor([[*short, PAD, PAD], long])
    padded = {
        "input_ids": torch.tensor([[PAD, 20], [21, 22]]),
        "attention_mask": torch.tensor([[0, 1], [1, 1]]),
    }
    model = tiny(family)
    expert, blind = MaskedLanguageModel(model, pad=PAD, **settings), MaskedLanguageModel(model, **settings)
    for prompt, own in ((None, (None, None)), (padded, (torch.tensor([[20]]), torch.tensor([[21, 22]])))):
        said = expert.log_probs(together, prompt)
        for row, text in enumerate((short, long)):
            alone = blind.log_probs(torch.tensor([text]), own[row])[0]
            assert torch.allclose(said[row, : len(text)], alone, atol=1e-4)
    assert not torch.allclose(blind.log_probs(together, padded)[0, :3], said[0, :3], atol=1e-3)
    assert compose([expert]).sample(together).x_0[0, 3:].tolist() == [PAD, PAD]
    with pytest.raises(InvalidInput, match="pad: expected the id of one of the tokens, got 99"):
        MaskedLanguageModel(model, mask_token=MASK, pad=99)


def test_a_model_whose_dropout_draws_is_refused() -> None:
    """As PEFT leaves them, and every class of one's own."""
    model = tiny("Bert")
    team = compose([MaskedLanguageModel(model, mask_token=MASK)])
    model.train()
    with pytest.raises(
        InvalidInput, match=r"BertForMaskedLM is in training mode, .* call its eval\(\) first"
    ):
        team.sample(CELLS)
    model.eval()
    assert (team.sample(CELLS).x_0 != VOCABULARY).all()


class Returning(nn.Module):
    """A model that returns its logits in another form."""

    def __init__(self, form: Any) -> None:
        super().__init__()
        self.inner, self.form = tiny("Bert"), form
        self.config = self.inner.config

    def forward(self, input_ids: Tensor) -> Any:
        return self.form(self.inner(input_ids=input_ids).logits)


@pytest.mark.parametrize("form", [lambda it: (it, None), lambda it: {"logits": it}, lambda it: it])
def test_logits_are_found_in_what_models_return(form: Any) -> None:
    said = MaskedLanguageModel(Returning(form), mask_token=MASK).log_probs(CELLS, None)
    assert torch.equal(said, MaskedLanguageModel(tiny("Bert"), mask_token=MASK).log_probs(CELLS, None))


def test_what_holds_no_logits_is_refused() -> None:
    for form in (lambda it: None, lambda it: {"scores": it}, lambda it: ()):
        with pytest.raises(InvalidInput, match=r"model: expected logits, or an output with `.logits`, got"):
            MaskedLanguageModel(Returning(form), mask_token=MASK).log_probs(CELLS, None)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"suppressed": [77]}, "suppressed: expected ids of tokens, 0 .. 39, got 77"),
        ({"prefix": [99]}, "prefix: expected ids of tokens, 0 .. 39, got 99"),
        ({"suppressed": 7}, "suppressed: expected ids of tokens in a row, such as [7], got 7"),
        ({"prefix": "[CLS]"}, "prefix: expected ids of tokens in a row, such as [7], got '[CLS]'"),
        ({"end": "</s>"}, "end: expected the id of one of the tokens, got '</s>'"),
        ({"mask_token": -1}, "mask_token: expected ids of tokens, whole numbers, got -1"),
        ({"mask_token": "[MASK]"}, "mask_token: expected ids of tokens, whole numbers, got '[MASK]'"),
        (
            {"mask_token": 40},
            "mask_token: the model reads ids 0 .. 39, got 40; where a tokenizer was given a mask, ",
        ),
        ({"tokens": range(20, 50)}, "tokens: expected ids of tokens, 0 .. 39, got 40"),
        ({"tokens": ["the"]}, "tokens: expected ids of tokens, 0 .. 39, got 'the'"),
        ({"tokens": Tokenizer({}, [])}, "tokens: expected ids of tokens in a row, such as [7], got <"),
        (
            {"model": "bert-base"},
            "model: expected a model, got 'bert-base'; load it first, as AutoModelForMaskedLM",
        ),
        ({"adapter": ""}, "adapter: expected one of the model's (none), got ''"),
    ],
)
def test_what_is_no_id_of_the_model_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{re.escape(sentence)}"):
        MaskedLanguageModel(**{"model": tiny("Bert"), "mask_token": MASK, **settings})
