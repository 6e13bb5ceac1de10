"""What each part adds to a logit is what TransformerLens finds in an exported model."""

from pathlib import Path

import numpy as np
import pytest
import torch

from minigpt.generation.explanation import explain_token
from minigpt.generation.torch_gpt import glass_of
from minigpt.interop.huggingface import write_folder

from ..lazy import lazily
from .examples import CONFIGS, byte_pairs, random_model, weights_of

pytestmark = pytest.mark.lens
bridge = lazily("transformer_lens.model_bridge", "make installs what these tests need")


@pytest.mark.parametrize("name", CONFIGS)
@torch.no_grad()
def test_transformer_lens_finds_the_same_parts(name: str, tmp_path: Path) -> None:
    """By its direct logit attribution, with the norms folded into the matrices after them and the
    rows of the output layer centred."""
    model = random_model(name)
    write_folder(tmp_path, model.config, weights_of(model), byte_pairs())
    ids: list[int] = np.random.default_rng(0).integers(model.config.vocab_size, size=20).tolist()

    lens = bridge.TransformerBridge.boot_transformers(str(tmp_path), device="cpu")
    # The biases of the values stay with their heads, as they do here.
    lens.enable_compatibility_mode(fold_value_biases=False, disable_warnings=True)
    _, cache = lens.run_with_cache(torch.tensor([ids[:-1]]))
    updates, labels = cache.get_full_resid_decomposition(
        expand_neurons=False, pos_slice=-1, return_labels=True
    )  # (parts, 1, emb_dim)
    added = cache.logit_attrs(updates, tokens=ids[-1], pos_slice=-1)[:, 0].tolist()

    theirs = dict(zip(labels, added, strict=True))
    expected = {"embedding": theirs["embed"] + theirs.get("pos_embed", 0.0)}
    for layer in range(model.config.num_layers):
        for head in range(model.config.num_heads):
            expected[f"{layer + 1}.{head + 1}"] = theirs[f"L{layer}H{head}"]
        expected[f"{layer + 1} feed-forward"] = theirs[f"{layer}_mlp_out"]
    # The bias of the final norm, folded, is a bias of the output layer.
    expected["bias"] = theirs["bias"] + lens.unembed.b_U[ids[-1]].item()

    parts = explain_token(glass_of(model), ids, len(ids) - 1).parts
    assert list(parts) == list(expected)
    assert parts == pytest.approx(expected, abs=1e-4)
