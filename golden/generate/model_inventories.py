"""model_inventories: names and shapes of every tensor that transformers writes for small models of every family.

A model is built from its configuration and saved; what stands in its safetensors file is listed, as are the elements of
the parameters that it learns. Sizes are drawn, so that no two extents of a case agree by habit.
"""

import json
import logging as python_logging
import tempfile
from pathlib import Path

import numpy as np
import transformers
from safetensors import safe_open
from transformers.utils import logging

from .golden_file import Golden, tool_versions

logging.set_verbosity_error()
logging.disable_progress_bar()
python_logging.getLogger("transformers").setLevel(python_logging.ERROR)
CASES_PER_FAMILY = 5


class Sizes:
    """Extents from one seed."""

    def __init__(self, seed):
        self.generator = np.random.Generator(np.random.PCG64(seed))

    def between(self, low, high):
        return int(self.generator.integers(low, high + 1))

    def coin(self):
        return bool(self.generator.integers(0, 2))

    def decoder(self):
        """What all families but GPT-2 share; width a multiple of the heads."""
        kv_heads = self.between(1, 3)
        heads = kv_heads * self.between(1, 3)
        return dict(vocab_size=self.between(20, 60), hidden_size=2 * heads * self.between(1, 6),
                    intermediate_size=self.between(5, 40), num_hidden_layers=self.between(1, 4),
                    num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=self.between(8, 64),
                    tie_word_embeddings=self.coin())


def gpt2(sizes):
    heads = sizes.between(1, 4)
    return dict(vocab_size=sizes.between(20, 60), n_positions=sizes.between(8, 64), n_embd=heads * sizes.between(1, 9),
                n_layer=sizes.between(1, 4), n_head=heads, n_inner=sizes.between(5, 40) if sizes.coin() else None,
                tie_word_embeddings=sizes.coin())


def llama(sizes):
    return sizes.decoder() | dict(head_dim=2 * sizes.between(1, 6), attention_bias=sizes.coin(), mlp_bias=sizes.coin())


def qwen2(sizes):
    return sizes.decoder()


def qwen3(sizes):
    return sizes.decoder() | dict(head_dim=2 * sizes.between(1, 6), attention_bias=sizes.coin())


def mixtral(sizes):
    experts = sizes.between(2, 6)
    return sizes.decoder() | dict(head_dim=2 * sizes.between(1, 6), num_local_experts=experts,
                                  num_experts_per_tok=sizes.between(1, experts))


def qwen3_moe(sizes):
    fields, experts = sizes.decoder(), sizes.between(2, 6)
    step = sizes.between(1, fields["num_hidden_layers"])
    leading = sizes.between(0, fields["num_hidden_layers"] // step * step - 1)
    return fields | dict(head_dim=2 * sizes.between(1, 6), num_experts=experts, num_experts_per_tok=sizes.between(1, experts),
                         moe_intermediate_size=sizes.between(3, 20), decoder_sparse_step=step,
                         mlp_only_layers=list(range(leading)))


def deepseek_v3(sizes):
    fields, experts = sizes.decoder(), 2 * sizes.between(2, 4)
    fields["num_key_value_heads"] = fields["num_attention_heads"]
    return fields | dict(
        n_routed_experts=experts, num_experts_per_tok=sizes.between(1, 2), moe_intermediate_size=sizes.between(3, 20),
        n_shared_experts=sizes.between(1, 3), first_k_dense_replace=sizes.between(0, fields["num_hidden_layers"] - 1),
        n_group=2, topk_group=2, q_lora_rank=sizes.between(3, 20) if sizes.coin() else None,
        kv_lora_rank=sizes.between(3, 20), qk_rope_head_dim=2 * sizes.between(1, 4), qk_nope_head_dim=sizes.between(1, 9),
        v_head_dim=sizes.between(1, 9))


def mistral(sizes):
    return sizes.decoder() | dict(head_dim=2 * sizes.between(1, 6), sliding_window=None)


def olmoe(sizes):
    experts = sizes.between(2, 6)
    return sizes.decoder() | dict(num_experts=experts, num_experts_per_tok=sizes.between(1, experts))


#           family, configuration class, model class
FAMILIES = [(gpt2, "GPT2Config", "GPT2LMHeadModel"), (llama, "LlamaConfig", "LlamaForCausalLM"),
            (qwen2, "Qwen2Config", "Qwen2ForCausalLM"), (qwen3, "Qwen3Config", "Qwen3ForCausalLM"),
            (mixtral, "MixtralConfig", "MixtralForCausalLM"), (qwen3_moe, "Qwen3MoeConfig", "Qwen3MoeForCausalLM"),
            (deepseek_v3, "DeepseekV3Config", "DeepseekV3ForCausalLM"), (mistral, "MistralConfig", "MistralForCausalLM"),
            (olmoe, "OlmoeConfig", "OlmoeForCausalLM")]


def one_model(config_class, model_class, fields):
    """config.json, tensors of the saved file as {name: shape}, and elements of the learned parameters."""
    config = getattr(transformers, config_class)(**fields, bos_token_id=None, eos_token_id=None)
    model = getattr(transformers, model_class)(config)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = json.loads((Path(folder) / "config.json").read_text())
        del saved["transformers_version"]  # tool_versions states it
        with safe_open(Path(folder) / "model.safetensors", "np") as file:
            tensors = {name: file.get_slice(name).get_shape() for name in sorted(file.keys())}
    return {"config": saved, "tensors": tensors, "parameters": sum(p.numel() for p in model.parameters())}


def cases():
    for index, (family, config_class, model_class) in enumerate(FAMILIES):
        seed = 500 + index
        sizes = Sizes(seed)
        models = [one_model(config_class, model_class, family(sizes)) for _ in range(CASES_PER_FAMILY)]
        yield Golden(
            "model_inventories", family.__name__, "transformers",
            f"files that transformers' {model_class}.save_pretrained writes", tool_versions("transformers", "safetensors"),
            tensors={"parameters": np.array([model["parameters"] for model in models])}, seed=seed,
            folder="model_inventories",
            texts={f"{kind}/{i}": json.dumps(model[kind]) for i, model in enumerate(models) for kind in ("config", "tensors")},
            note="parameters/i counts what model i learns; buffers that are saved stand in tensors/i alone")
