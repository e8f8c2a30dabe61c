"""Hugging Face's MarianMT on PyTorch, as a program that decodes."""

from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from transformers import MarianConfig
from transformers import MarianMTModel

VERSIONS = {name: version(name) for name in ("transformers", "torch")}

PAD, BOS, EOS = 0, 2, 3

ATTENTION = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PROJECTIONS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}
FEED_FORWARD = {"intermediate": "fc1", "output": "fc2"}
NORMS = {
    "self_residual/norm": "self_attn_layer_norm",
    "cross_residual/norm": "encoder_attn_layer_norm",
    "ff_residual/norm": "final_layer_norm",
}
KINDS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}


def folder(options) -> Path:
    """Folder of the converted model."""
    return Path(options["weights"] + ".marian")


def config(sizes) -> MarianConfig:
    """The configuration of the model."""
    layers, heads = sizes["num_layers"], sizes["num_heads"]
    return MarianConfig(
        vocab_size=sizes["vocabulary_size"],
        d_model=sizes["hidden_dim"],
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=sizes["intermediate_dim"],
        decoder_ffn_dim=sizes["intermediate_dim"],
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        decoder_start_token_id=BOS,
        eos_token_id=EOS,
        forced_eos_token_id=None,
    )


def theirs(name: str) -> str:
    """Their name for one of our weights inside a block."""
    block, layer, *rest = name.split("/")
    stack, number = block.split("_")
    if layer in ATTENTION:
        place = f"{ATTENTION[layer]}.{PROJECTIONS[rest[0]]}"
    elif layer == "feed_forward":
        place = FEED_FORWARD[rest[0]]
    else:
        place = NORMS[f"{layer}/{rest[0]}"]
    return f"model.{stack}.layers.{number}.{place}.{KINDS[rest[-1]]}"


def convert(options) -> None:
    """Writes the model in the format of Hugging Face."""
    if folder(options).exists():
        return
    weights = dict(np.load(options["weights"]))
    del weights["positions"]
    embeddings = torch.from_numpy(weights.pop("embeddings/target/embeddings"))
    tied = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens")
    state = {f"{name}.weight": embeddings for name in (*tied, "lm_head")}
    for name, value in weights.items():
        value = value.T if name.endswith("kernel") else value
        state[theirs(name)] = torch.from_numpy(value.copy())
    model = MarianMTModel(config(options["sizes"]))
    missing, unexpected = model.load_state_dict(state, strict=False)
    known = {"final_logits_bias"}
    if unexpected or {name for name in missing if "positions" not in name} - known:
        raise ValueError(f"{missing} are missing, {unexpected} are too many.")
    model.save_pretrained(folder(options))


class Engine:
    """Beam search of Hugging Face."""

    def __init__(self, options):
        torch.set_num_threads(options["threads"])
        torch.set_num_interop_threads(1)
        dtype = getattr(torch, options["precision"])
        self.device = options["device"]
        self.model = MarianMTModel.from_pretrained(folder(options), dtype=dtype).eval()
        # Their sinusoids differ from ours, and are not saved.
        table = torch.from_numpy(np.load(options["weights"])["positions"])
        for stack in (self.model.model.encoder, self.model.model.decoder):
            stack.embed_positions.weight.data.copy_(table)
        self.model.to(self.device)
        self.beams = options["beams"]

    def inputs(self, sources):
        return torch.from_numpy(sources.astype("int64")).to(self.device)

    @torch.inference_mode()
    def search(self, inputs, steps: int):
        return self.model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            num_beams=self.beams,
            num_return_sequences=self.beams,
            do_sample=False,
            early_stopping=True,
            min_new_tokens=steps,
            max_new_tokens=steps,
        )

    def ids(self, found) -> list:
        """The hypotheses, without the token that starts each of them."""
        return found[:, 1:].unflatten(0, (-1, self.beams)).tolist()
