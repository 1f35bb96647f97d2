"""config_keys: which keys of a config.json the configuration classes of transformers know, type by type, and which their models read.

A class knows its fields, its other names for them (attribute_map), what its constructor takes out of the file, and its properties. What
a model reads is seen by a configuration that keeps the names it is asked for, those that it does not have among them, while the model is
built, trained for a step and generates, with each kind of rotary positions and of attention. A key that is in neither list changes
nothing of what transformers computes. Of those that are, `moves` has each with a value that gives the same weights another loss, other
logits or another text.
"""

import dataclasses
import inspect
import json
import logging as python_logging
import re

import torch
from transformers import GenerationConfig, PreTrainedConfig
from transformers.modeling_rope_utils import RotaryEmbeddingConfigMixin
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING
from transformers.utils import logging

from .golden_file import Golden, tool_versions

logging.set_verbosity_error()
python_logging.getLogger("transformers").setLevel(python_logging.ERROR)

SMALL = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=64)
TYPES = {
    "llama": SMALL, "mistral": SMALL, "qwen2": SMALL, "qwen3": SMALL, "mixtral": SMALL | dict(num_local_experts=4, head_dim=8),
    "qwen3_moe": SMALL | dict(num_experts=4, moe_intermediate_size=16, num_experts_per_tok=2),
    "olmoe": SMALL | dict(num_experts=4, num_experts_per_tok=2),
    "deepseek_v3": SMALL | dict(num_key_value_heads=4, moe_intermediate_size=16, n_routed_experts=8, num_experts_per_tok=2, n_group=2,
                                topk_group=1, kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=8, v_head_dim=8, qk_nope_head_dim=8,
                                first_k_dense_replace=1),
    "gpt2": dict(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64)}
ROPES = [dict(rope_type="default", rope_theta=1e4), dict(rope_type="yarn", rope_theta=1e4, factor=4.0),
         dict(rope_type="llama3", rope_theta=1e4, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)]


def known_to(config_class):
    """Keys of a file that the class does anything with."""
    taken = "".join(map(inspect.getsource, (PreTrainedConfig.__post_init__, RotaryEmbeddingConfigMixin.convert_rope_params_to_dict)))
    properties = {name for name in dir(config_class) if isinstance(getattr(config_class, name), property) and getattr(config_class, name).fset}
    return ({field.name for field in dataclasses.fields(config_class)} | properties | set(config_class.attribute_map)
            | set(config_class.attribute_map.values()) | set(re.findall(r'kwargs\.(?:pop|get)\("(\w+)"', taken))
            | set(GenerationConfig._get_default_generation_params()))


def read_by(config_class, fields):
    """Names that the model asks its configuration for, as far as a file could have them."""
    names = set()

    class Asked(config_class):
        def __getattribute__(self, name):
            names.add(name)
            return super().__getattribute__(name)

        def __getattr__(self, name):
            names.add(name)
            raise AttributeError(name)

    tokens = torch.arange(32).reshape(2, 16)
    for rope in ROPES if "hidden_size" in fields else [None]:
        for attention in ("eager", "sdpa"):
            config = Asked(**fields, **({"rope_parameters": dict(rope)} if rope else {}))
            config._attn_implementation = attention
            model = MODEL_FOR_CAUSAL_LM_MAPPING[config_class](config)
            model.train()
            model(input_ids=tokens, labels=tokens).loss.backward()
            model.eval().generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=2, do_sample=False, pad_token_id=0)
    # Of the class itself, not of a file: methods, constants, properties that nobody sets.
    own = {name for name in dir(config_class) if name not in known_to(config_class)}
    return {name for name in names - own if not name.startswith("__") and not name.endswith("_internal")}


VALUES = [True, False, 0, 1, 2, 3, 0.5, "gelu"]


def outcome(config_class, fields, weights=None):
    """Loss, logits and text of a model with those weights, or with weights of its own, and these."""
    tokens = torch.arange(32).reshape(2, 16)
    torch.manual_seed(1)
    config = config_class(**json.loads(json.dumps(fields)))
    config._attn_implementation = "eager"
    model = MODEL_FOR_CAUSAL_LM_MAPPING[config_class](config)
    if weights is not None:
        model.load_state_dict(weights)
    torch.manual_seed(2)
    loss = model.train()(input_ids=tokens, labels=tokens).loss.item()
    model.eval()
    text = model.generate(tokens, attention_mask=torch.ones_like(tokens), generation_config=GenerationConfig(
        max_new_tokens=4, do_sample=False, pad_token_id=0, eos_token_id=1000))
    return loss, model(input_ids=tokens).logits, getattr(text, "sequences", text), model.state_dict()


def that_move(config_class, fields, keys):
    """{key: a value of it that changes what is computed}. A value that transformers refuses, or that no weights fit, moves nothing."""
    loss, logits, text, weights = outcome(config_class, fields)
    moving = {}
    for key in keys:
        for value in VALUES:
            try:
                other = outcome(config_class, fields | {key: value}, weights)
            except Exception:
                continue
            if other[0] != loss or not torch.equal(other[1], logits) or not torch.equal(other[2], text):
                moving[key] = value
                break
    return moving


def rope_keys():
    """Keys of the table of rotary positions that transformers knows, by rope_type; of others it warns."""
    keys = {}

    class Kept(PreTrainedConfig):
        def _check_received_keys(self, rope_type, received_keys, required_keys, optional_keys=None, ignore_keys=None):
            keys[rope_type] = {"type", "rope_type", "partial_rotary_factor"} | required_keys | (optional_keys or set())
            raise KeyError(rope_type)

    for name, check in inspect.getmembers(RotaryEmbeddingConfigMixin, inspect.isfunction):
        if kind := re.fullmatch(r"_validate_(\w+)_rope_parameters", name):
            try:
                check(Kept(), {"rope_type": kind[1]})
            except KeyError:
                pass
    return keys


def cases():
    rope = {kind: sorted(keys) for kind, keys in rope_keys().items()}
    for case, fields in TYPES.items():
        config_class = CONFIG_MAPPING[case]
        known, read = sorted(known_to(config_class)), sorted(read_by(config_class, fields))
        config = fields | ({"rope_parameters": ROPES[1] | {"original_max_position_embeddings": 32}} if case != "gpt2" else {})
        tables_and_generation = {"rope_parameters", "rope_scaling", *GenerationConfig._get_default_generation_params()}
        moves = that_move(config_class, config, sorted({*known, *read} - tables_and_generation))
        keys = {"known": known, "read": read, "rope": rope, "config": {"model_type": case} | config, "moves": moves}
        yield Golden("config_keys", case, "transformers", f"transformers' {config_class.__name__} and what its model asks it for",
                     tool_versions("transformers", "torch"), {}, texts={"keys": json.dumps(keys)}, folder="config_keys")
