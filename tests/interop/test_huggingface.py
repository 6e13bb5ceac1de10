"""A model is the same function here and in transformers: logits, loss, greedy text, both ways.

Nothing of transformers runs in minigpt itself; it is what the results are compared with.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from minigpt import GPT, GPTConfig, SampleConfig, UserError, Writer
from minigpt.config import PARTS, count_parameters, named_shapes
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.generation.torch_gpt import glass_of, torch_of
from minigpt.interop.architectures import ARCHITECTURES
from minigpt.interop.gguf import write_gguf
from minigpt.interop.huggingface import read_folder, write_folder
from minigpt.interop.mapping import (
    config_from_huggingface,
    config_to_huggingface,
    weights_from_huggingface,
    weights_to_huggingface,
)
from minigpt.runs.find import find_model
from minigpt.tokenizer import Tokenizer

from ..lazy import Lazy
from .examples import (
    CONFIGS,
    HARD_TEXT,
    PROMPT,
    TOKENIZERS,
    VOCAB_SIZE,
    byte_pairs,
    random_model,
    randomize,
    weights_of,
)
from .test_tokenizer_import import SMOLLM

transformers = Lazy("transformers")

pytestmark = pytest.mark.long

THEIRS: dict[str, Any] = {
    "GPT-2": lambda: transformers.GPT2LMHeadModel(_gpt2()),
    "GPT-2 untied": lambda: transformers.GPT2LMHeadModel(
        _gpt2(n_inner=31, activation_function="gelu_pytorch_tanh", tie_word_embeddings=False)
    ),
    "Llama": lambda: transformers.LlamaForCausalLM(
        _llama(tie_word_embeddings=True, rope_theta=100_000.0)
    ),
    "Llama, heads wider than the model": lambda: transformers.LlamaForCausalLM(
        _llama(hidden_size=24, head_dim=16, num_key_value_heads=6)
    ),
    "Qwen3": lambda: transformers.Qwen3ForCausalLM(_qwen3(tie_word_embeddings=True)),
    "Qwen3, heads wider than the model": lambda: transformers.Qwen3ForCausalLM(
        _qwen3(hidden_size=20, head_dim=16, tie_word_embeddings=True)
    ),
    "Qwen3 untied": lambda: transformers.Qwen3ForCausalLM(
        _qwen3(rope_parameters={"rope_type": "default", "rope_theta": 777.0}, rms_norm_eps=1e-5)
    ),
}


def _gpt2(**changes: Any) -> Any:
    shape = {"vocab_size": VOCAB_SIZE, "n_embd": 30, "n_layer": 2, "n_head": 5, "n_positions": 128}
    return transformers.GPT2Config(**{**shape, **changes})


_LLAMA_SHAPE = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 36,
    "intermediate_size": 41,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


def _llama(**changes: Any) -> Any:
    return transformers.LlamaConfig(**{**_LLAMA_SHAPE, **changes})


def _qwen3(**changes: Any) -> Any:
    return transformers.Qwen3Config(**{**_LLAMA_SHAPE, "head_dim": 6, **changes})


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_pairs()


def write(folder: Path, model: GPT, tokenizer: Tokenizer) -> None:
    write_folder(folder, model.config, weights_of(model), tokenizer)


def read(folder: Path) -> tuple[GPT, Tokenizer]:
    config, weights, tokenizer = read_folder(folder)
    return torch_of(NumpyGPT(config, weights)), tokenizer


def exported(folder: Path, model: GPT, tokenizer: Tokenizer) -> Any:
    """The model as transformers loads it from a folder that we wrote."""
    folder.mkdir(exist_ok=True)
    write(folder, model, tokenizer)
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()


def saved(folder: Path, model: Any, tokenizer: Tokenizer, **options: Any) -> Path:
    """A folder that transformers wrote, with a tokenizer of ours."""
    model.save_pretrained(folder, **options)
    (folder / "tokenizer.json").write_text(tokenizer.to_json())
    return folder


def assert_same_function(ours: GPT, theirs: Any, tokenizer: Tokenizer) -> None:
    ids = torch.randint(VOCAB_SIZE, (2, 100), generator=torch.Generator().manual_seed(1))  # (b, T)
    with torch.no_grad():
        logits = ours(ids[:, :-1])
        loss = ours.loss(ids[:, :-1], ids[:, 1:])
        result = theirs(ids, labels=ids)
    assert logits.std() > 0.3
    torch.testing.assert_close(logits, result.logits[:, :-1], rtol=0, atol=1e-4)
    torch.testing.assert_close(loss, result.loss, rtol=1e-5, atol=0)

    prompt = torch.tensor([tokenizer.encode(PROMPT)])
    end = tokenizer.end_of_text
    written = theirs.generate(
        prompt, max_new_tokens=40, do_sample=False, eos_token_id=end, pad_token_id=end
    )[0].tolist()
    assert tokenizer.decode(written) == Writer(glass_of(ours), tokenizer).generate(
        PROMPT, temperature=0, max_new_tokens=40
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_of_ours_is_the_same_in_transformers(
    name: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    ours = random_model(name)
    assert_same_function(ours, exported(tmp_path, ours, tokenizer), tokenizer)


@pytest.mark.parametrize("name", THEIRS)
def test_a_model_of_transformers_is_the_same_here(
    name: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    torch.manual_seed(0)
    theirs = THEIRS[name]().eval()
    randomize(theirs)
    ours, tokenizer = read(saved(tmp_path, theirs, tokenizer))
    assert_same_function(ours, theirs, tokenizer)


def test_a_folder_like_that_of_smollm_is_the_same_model_here(tmp_path: Path) -> None:
    """With a tokenizer of its kind, which is kept where it goes out again."""
    theirs = transformers.LlamaForCausalLM(_llama(vocab_size=512, tie_word_embeddings=True)).eval()
    randomize(theirs)
    theirs.save_pretrained(tmp_path / "in")
    (tmp_path / "in" / "tokenizer.json").write_text(SMOLLM["few bytes"].to_str())

    ours, tokenizer = read(tmp_path / "in")
    assert_same_function(ours, theirs, tokenizer)
    assert_same_function(ours, exported(tmp_path / "out", ours, tokenizer), tokenizer)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_written_and_read_again_has_the_same_bits(
    name: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    ours = random_model(name)
    write(tmp_path, ours, tokenizer)
    again, tokenizer_again = read(tmp_path)
    assert tokenizer_again.to_json() == tokenizer.to_json()
    filled: dict[str, Any] = {"architecture": ours.config.preset, "hidden_dim": ours.config.ff_dim}
    if ours.config.preset != "gpt2":
        filled |= {"num_kv_heads": ours.config.kv_heads, "head_dim": ours.config.head_size}
    assert again.config == dataclasses.replace(ours.config, **filled)
    for key, tensor in ours.state_dict().items():
        assert torch.equal(again.state_dict()[key], tensor), key


def test_the_table_names_every_field_of_the_config() -> None:
    """A field that it does not name would be lost."""
    fields = {field.name for field in dataclasses.fields(GPTConfig)}
    assert ARCHITECTURES["gpt2"].keys.keys() <= fields
    for name in ("llama", "qwen3"):
        assert ARCHITECTURES[name].keys.keys() == fields - {"architecture", *PARTS}


@pytest.mark.parametrize("seed", range(2))
def test_generation_stops_where_ours_does(seed: int, tmp_path: Path, tokenizer: Tokenizer) -> None:
    """The end of text is made likely; of the exported defaults only the sampling is changed."""
    ours = random_model("gpt2 untied", seed)
    with torch.no_grad():
        ours.head.weight[tokenizer.end_of_text] *= 2.5
    theirs = exported(tmp_path, ours, tokenizer)
    prompt = torch.tensor([tokenizer.encode(PROMPT)])
    written = theirs.generate(prompt, do_sample=False)[0]
    text = Writer(glass_of(ours), tokenizer).generate(PROMPT, temperature=0, max_new_tokens=64)
    assert tokenizer.decode(written.tolist()) == text
    ended = written[-1] == tokenizer.end_of_text
    assert ended or len(written) == prompt.shape[1] + 64


def test_transformers_samples_as_generate_does_by_default(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    usual = exported(tmp_path, random_model("qwen3"), tokenizer).generation_config
    assert usual.do_sample and usual.temperature == SampleConfig().temperature
    assert usual.top_k == 0  # not transformers' own 50


@pytest.mark.parametrize("temperature", [0.7, 0.0])
def test_transformers_samples_as_the_run_says(
    tmp_path: Path, tokenizer: Tokenizer, temperature: float
) -> None:
    model = random_model("qwen3")
    usual = SampleConfig(temperature=temperature, top_p=0.9, min_p=0.1, repetition_penalty=1.1)
    write_folder(tmp_path, model.config, weights_of(model), tokenizer, usual=usual)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).generation_config
    assert theirs.do_sample == (temperature > 0)
    assert theirs.temperature == (temperature or 1.0)
    assert (theirs.top_p, theirs.min_p, theirs.repetition_penalty) == (0.9, 0.1, 1.1)
    assert theirs.top_k == 0


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_hard_text_has_the_same_ids_in_transformers(name: str, tmp_path: Path) -> None:
    ours = TOKENIZERS[name]()
    write(tmp_path, random_model("qwen3", vocab_size=ours.vocab_size), ours)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ids = ours.encode(HARD_TEXT)
    assert theirs(HARD_TEXT)["input_ids"] == ids
    assert theirs.decode(ids) == HARD_TEXT == ours.decode(ids)
    assert theirs.eos_token_id == ours.end_of_text
    assert len(theirs) == ours.vocab_size


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_checkpoint_in_shards_and_in_half_precision_is_read_whole_as_float32(
    dtype: torch.dtype, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    theirs = THEIRS["Qwen3"]().to(dtype)
    whole, _ = read(saved(tmp_path / "whole", theirs, tokenizer))
    assert {p.dtype for p in whole.parameters()} == {torch.float32}
    assert torch.equal(whole.token_embedding.weight, theirs.model.embed_tokens.weight.float())
    folder = saved(tmp_path / "shards", theirs, tokenizer, max_shard_size="10KB")
    first, *others = sorted(folder.glob("model-*-of-*.safetensors"))
    assert others
    sharded, _ = read(folder)
    for key, tensor in whole.state_dict().items():
        assert torch.equal(sharded.state_dict()[key], tensor), key
    first.unlink()
    with pytest.raises(UserError, match=f"^{folder}: tensor .* is missing"):
        read_folder(folder)


def test_the_names_of_the_first_gpt2_files_are_understood(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    """They leave "transformer." out and hold the causal masks, and the head a second time."""
    from safetensors.torch import load_file, save_file

    folder = saved(tmp_path, THEIRS["GPT-2"](), tokenizer)
    today, _ = read(folder)
    tensors = load_file(folder / "model.safetensors")
    old = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    old["h.0.attn.bias"] = torch.ones(1, 1, 128, 128)
    old["h.1.attn.masked_bias"] = torch.tensor(-1e4)
    old["lm_head.weight"] = old["wte.weight"].clone()
    save_file(old, folder / "model.safetensors")
    first, _ = read(folder)
    for key, tensor in today.state_dict().items():
        assert torch.equal(first.state_dict()[key], tensor), key


@pytest.mark.parametrize("umask", [0o022, 0o027])
def test_exported_files_have_the_permissions_of_any_new_file(
    umask: int, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    previous = os.umask(umask)
    try:
        write(tmp_path, random_model("gpt2"), tokenizer)
    finally:
        os.umask(previous)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(modes, 0o666 & ~umask)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (
            "gpt2",
            {"model_type": "bert"},
            "model_type 'bert' is not supported, only gpt2, llama and qwen3",
        ),
        ("gpt2", {"model_type": ["gpt2"]}, r"model_type \['gpt2'\]"),
        ("gpt2", {"activation_function": "relu"}, "activation_function 'relu' .*only 'gelu_new'"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx True"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights False"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention True"),
        ("gpt2", {"quantization_config": {"bits": 4}}, "quantization_config"),
        ("gpt2", {"n_head": 4}, r"multiple of num_heads \(4\)"),
        ("gpt2", {"n_layer": "two"}, "num_layers .*'two'"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act 'gelu' .*only 'silu'"),
        ("llama", {"attention_bias": True}, "attention_bias True"),
        ("llama", {"mlp_bias": True}, "mlp_bias True"),
        ("llama", {"rope_interleaved": True}, "rope_interleaved True"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ("llama", {"sliding_window": 4096}, "sliding_window 4096"),
        ("llama", {"rope_scaling": {"rope_type": "llama3"}}, "rope_scaling .*llama3"),
        ("llama", {"rope_parameters": {"rope_type": "dynamic"}}, "rope_parameters .*dynamic"),
        ("llama", {"head_dim": 7}, "head_dim must be even, got 7"),
        ("qwen3", {"hidden_act": "gelu"}, "hidden_act 'gelu' .*only 'silu'"),
        ("qwen3", {"attention_bias": True}, "attention_bias True"),
        ("qwen3", {"use_sliding_window": True}, "use_sliding_window True"),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 64}, "sliding_window 64"),
        ("qwen3", {"layer_types": ["sliding_attention"]}, "layer_types .*sliding_attention"),
        ("qwen3", {"layer_types": 3}, "layer_types 3"),
        ("qwen3", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_scaling .*yarn"),
        ("qwen3", {"rope_parameters": {"rope_type": "linear"}}, "rope_parameters .*linear"),
        ("qwen3", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "rotary_factor.*0.5"),
        ("qwen3", {"rope_parameters": "none"}, "rope_parameters 'none'"),
        ("qwen3", {"head_dim": 7}, "head_dim must be even, got 7"),
        ("qwen3", {"head_dim": "8"}, "head_dim .*'8'"),
    ],
)
def test_what_an_architecture_does_not_compute_is_named_and_refused(
    name: str, change: dict[str, Any], words: str
) -> None:
    theirs = config_to_huggingface(random_model(name).config)
    if "rope_scaling" in change:  # the older way to say it
        del theirs["rope_parameters"]
    with pytest.raises(UserError, match=f"^.*{words}.*$"):
        config_from_huggingface({**theirs, **change})


def test_a_config_that_leaves_out_what_transformers_defaults_is_read_with_its_defaults() -> None:
    theirs = config_to_huggingface(random_model("gpt2").config)
    for key in ("layer_norm_epsilon", "tie_word_embeddings", "n_inner", "resid_pdrop"):
        del theirs[key]
    config = config_from_huggingface(theirs)
    default = transformers.GPT2Config()
    assert config.norm_eps == default.layer_norm_epsilon and config.tie_embeddings
    assert config.dropout == default.resid_pdrop and config.ff_dim == 4 * 21
    del theirs["n_embd"]
    with pytest.raises(UserError, match="n_embd is missing"):
        config_from_huggingface(theirs)


def test_the_config_of_qwen3_0_6b_is_read() -> None:
    """Its heads together are wider than the model; the values are those of its config.json."""
    theirs = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu",
        "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "max_position_embeddings": 40_960, "rope_theta": 1_000_000, "rope_scaling": None,
        "attention_bias": False, "attention_dropout": 0.0, "rms_norm_eps": 1e-6,
        "max_window_layers": 28, "sliding_window": None, "use_sliding_window": False,
        "tie_word_embeddings": True, "vocab_size": 151_936,
    }  # fmt: skip
    assert count_parameters(config_from_huggingface(theirs)) == 596_049_920
    del theirs["head_dim"]  # 128 is transformers' default too
    assert config_from_huggingface(theirs).head_size == transformers.Qwen3Config().head_dim == 128


SMOLLM2_135M: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192,
    "rope_theta": 100_000, "rope_scaling": None, "rope_interleaved": False,
    "attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False, "pretraining_tp": 1,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "vocab_size": 49_152, "use_cache": True,
    "bos_token_id": 0, "eos_token_id": 0, "is_llama_config": True,
}  # fmt: skip
SMOLLM_135M = {**SMOLLM2_135M, "max_position_embeddings": 2048, "rope_theta": 10_000.0}
GPT2_124M: dict[str, Any] = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
    "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "n_ctx": 1024,
    "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1, "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02, "vocab_size": 50_257, "bos_token_id": 50_256, "eos_token_id": 50_256,
}  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "kind", "size"),
    [
        (SMOLLM2_135M, "LlamaForCausalLM", 134_515_008),
        (SMOLLM_135M, "LlamaForCausalLM", 134_515_008),
        (GPT2_124M, "GPT2LMHeadModel", 124_439_808),
    ],
    ids=["SmolLM2-135M", "SmolLM-135M", "GPT-2"],
)
def test_the_models_that_the_docs_name_have_the_weights_of_transformers(
    theirs: dict[str, Any], kind: str, size: int
) -> None:
    """The values are those of their config.json; the arrays and the model take no memory."""
    config = config_from_huggingface(theirs)
    assert count_parameters(config) == size
    assert config.head_size == 64 and config.tie_embeddings and config.norm_eps == 1e-5
    if "rope_theta" in theirs:
        assert config.rotary_base == theirs["rope_theta"]
        assert config.context_length == theirs["max_position_embeddings"]

    zero = np.zeros((), np.float32)
    ours = {name: np.broadcast_to(zero, shape) for name, shape in named_shapes(config)}
    tensors = weights_to_huggingface(ours, config)
    model_class = getattr(transformers, kind)
    with torch.device("meta"):
        expected = dict(model_class(model_class.config_class(**theirs)).named_parameters())
    assert {name: array.shape for name, array in tensors.items()} == {
        name: tuple(tensor.shape) for name, tensor in expected.items()
    }
    read_again = weights_from_huggingface(tensors, config)
    assert {name: array.shape for name, array in read_again.items()} == dict(named_shapes(config))


def test_a_llama_config_that_leaves_out_what_transformers_defaults_is_read_with_its_defaults() -> (
    None
):
    theirs = {**SMOLLM_135M, "hidden_act": "swish"}  # as silu is called, too
    for key in ("num_key_value_heads", "rope_theta", "rms_norm_eps", "attention_bias", "mlp_bias"):
        del theirs[key]
    config = config_from_huggingface(theirs)
    assert config.kv_heads == transformers.LlamaConfig(**theirs).num_key_value_heads == 9
    assert config.norm_eps == transformers.LlamaConfig().rms_norm_eps
    assert config.rotary_base == 10_000


def test_a_window_that_qwen3_does_not_use_does_no_harm() -> None:
    theirs = config_to_huggingface(random_model("qwen3").config) | {"sliding_window": 4096}
    assert config_from_huggingface(theirs).preset == "qwen3"
    del theirs["use_sliding_window"]
    assert config_from_huggingface(theirs).preset == "qwen3"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"norm": "layer"}, "run gpt2, llama and qwen3; they do not run qwen3 with norm layer$"),
        ({"architecture": "gpt2", "bias": False}, "they do not run gpt2 with bias off$"),
        ({"architecture": "llama", "positions": "learned"}, "run llama with positions learned$"),
        ({"architecture": "gpt2", "num_kv_heads": 2}, "have no gpt2 with num_kv_heads 2$"),
        ({"architecture": "gpt2", "head_dim": 5}, "have no gpt2 with head_dim 5$"),
        (
            {"architecture": "llama", "emb_dim": 30, "head_dim": 8},
            "no llama whose emb_dim 30 is not a multiple of num_heads 4$",
        ),
    ],
)
def test_what_no_architecture_has_is_not_exported(
    fields: dict[str, Any], words: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    config = GPTConfig(VOCAB_SIZE, **fields)
    weights = weights_of(GPT(config))
    for export in (
        lambda: write_folder(tmp_path, config, weights, tokenizer),
        lambda: write_gguf(tmp_path / "a.gguf", config, weights, tokenizer, "a"),
    ):
        with pytest.raises(UserError, match=words):
            export()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    """A good folder, to be spoiled."""
    write(tmp_path, random_model("gpt2"), tokenizer)
    return tmp_path


def test_weights_that_do_not_fit_name_the_tensor_and_both_shapes(
    folder: Path, tokenizer: Tokenizer
) -> None:
    from safetensors.numpy import save_file

    good = weights_to_huggingface(weights_of(random_model("gpt2")), random_model("gpt2").config)
    name = "transformer.h.1.mlp.c_fc.weight"
    for change, words in (
        ({name: np.zeros((21, 80))}, ["1.feed_forward.W_in.weight", "(80, 21)", "(84, 21)"]),
        ({"transformer.h.1.attn.c_attn.bias": np.zeros(64)}, ["1.attention.W_query.bias", "(22,)"]),
        ({"transformer.h.1.attn.c_attn.bias": np.array(1.0)}, ["1.attention.W_query.bias", "(1,)"]),
        ({"transformer.h.1.attn.c_attn.bias": None}, ["1.attention.W_query.bias", "missing"]),
        ({name: None}, [name, "missing"]),
        ({"transformer.h.9.ln_1.weight": np.zeros(21)}, ["h.9.ln_1", "GPT2LMHeadModel"]),
    ):
        tensors = {
            k: np.ascontiguousarray(v) for k, v in {**good, **change}.items() if v is not None
        }
        save_file(tensors, folder / "model.safetensors")
        with pytest.raises(UserError, match=f"^{folder}.*: ") as error:
            find_model(folder)
        assert all(word in str(error.value) for word in words), error.value


def test_a_bias_that_the_config_does_not_name_is_refused(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    theirs = transformers.LlamaForCausalLM(_llama(attention_bias=True))
    folder = saved(tmp_path, theirs, tokenizer)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"attention_bias": False}))
    with pytest.raises(UserError, match=r"layers\.0\.self_attn\.k_proj\.bias does not belong"):
        read_folder(folder)


def test_a_folder_that_cannot_be_read_is_refused_with_the_name_of_the_file(folder: Path) -> None:
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:200])
    with pytest.raises(UserError, match=r"model\.safetensors is damaged"):
        read_folder(folder)
    weights.rename(folder / "pytorch_model.bin")
    missing = "has no model.safetensors and no model-.*pickle.*save_pretrained"
    with pytest.raises(UserError, match=f"^{folder}: it {missing}"):
        read_folder(folder)
    weights.write_bytes(content)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=f"^{folder}.*has no tokenizer.json"):
        read_folder(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json is damaged"):
        read_folder(folder)
