"""config_defaults: what transformers' configuration classes make of a config.json in which one key is missing, or null.

Of every family one whole config.json, in which no value is the class's default where the class allows another. Each key is left
out, then set to null; the class reads the file and writes it again. A case keeps which keys of the whole file read otherwise then.
"""

import json
import logging as python_logging
import tempfile
from pathlib import Path

from transformers import AutoConfig
from transformers.utils import logging

from .golden_file import Golden, tool_versions

logging.set_verbosity_error()
python_logging.getLogger("transformers").setLevel(python_logging.ERROR)

# Other sizes are so that with any one default among them the file is a model.
DECODER = dict(vocab_size=40, hidden_size=128, intermediate_size=28, num_hidden_layers=3, num_attention_heads=64,
               num_key_value_heads=16, head_dim=10, max_position_embeddings=9000, tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh", rms_norm_eps=1e-3,
               initializer_range=0.5, rope_parameters={"rope_type": "default", "rope_theta": 500.0})
QWEN = dict(sliding_window=9, use_sliding_window=True)
NO_HEAD_DIM = {name: value for name, value in DECODER.items() if name != "head_dim"}  # of which the class has no key
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 2250, "beta_fast": 20.0,
        "beta_slow": 2.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 2250, "low_freq_factor": 2.0,
          "high_freq_factor": 5.0}
EXPERTS = dict(num_experts_per_tok=3, norm_topk_prob=True)
#        family: the keys of its whole config.json that are no others' but its own
FAMILIES = {
    "llama": DECODER | dict(attention_bias=True, mlp_bias=True),
    "llama_scaled": DECODER | dict(model_type="llama", attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3),
    "mistral": DECODER | dict(sliding_window=9),
    "qwen2": NO_HEAD_DIM | QWEN | dict(max_window_layers=0),
    "qwen3": DECODER | QWEN | dict(max_window_layers=0, attention_bias=True),
    "qwen3_yarn": DECODER | QWEN | dict(model_type="qwen3", max_window_layers=0, attention_bias=True, rope_parameters=YARN),
    "mixtral": DECODER | dict(sliding_window=9, num_local_experts=16, num_experts_per_tok=3),
    "qwen3_moe": DECODER | QWEN | EXPERTS | dict(attention_bias=True, num_experts=16, moe_intermediate_size=7, decoder_sparse_step=2,
                                                 mlp_only_layers=[0]),
    "olmoe": NO_HEAD_DIM | EXPERTS | dict(num_experts=16),
    "deepseek_v3": NO_HEAD_DIM | dict(
        num_key_value_heads=64, n_routed_experts=16, num_experts_per_tok=3, moe_intermediate_size=7, n_shared_experts=2,
        first_k_dense_replace=1, n_group=4, topk_group=2, norm_topk_prob=False, routed_scaling_factor=1.5, q_lora_rank=12,
        kv_lora_rank=14, qk_rope_head_dim=6, qk_nope_head_dim=5, v_head_dim=9, rope_interleave=False, num_nextn_predict_layers=2,
        rope_parameters=YARN | {"mscale": 0.5, "mscale_all_dim": 0.25}),
    "gpt2": dict(vocab_size=40, n_positions=64, n_embd=24, n_layer=3, n_head=6, n_inner=20, activation_function="gelu_pytorch_tanh",
                 layer_norm_epsilon=1e-3, initializer_range=0.5, tie_word_embeddings=False),
}


def read_and_written(config):
    """The config.json that the class writes of the one that it reads, without what concerns no model; an error's type where it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        try:
            AutoConfig.from_pretrained(folder).save_pretrained(folder)
        except Exception as error:  # each class has errors of its own
            return type(error).__name__
        written = json.loads(path.read_text())
    return {key: value for key, value in written.items() if key != "transformers_version"}


def changed(whole, config):
    """Keys of what the class writes of `config` that differ from the whole file's."""
    written = read_and_written(config)
    if isinstance(written, str):
        return written
    return {key: written.get(key) for key in whole | written if written.get(key) != whole.get(key)}


def one_family(name, fields):
    config = {"model_type": name} | fields
    whole = read_and_written(config)
    if isinstance(whole, str):
        raise ValueError(f"{name}: the whole file is refused, {whole}")
    texts = {"config": json.dumps(config), "written": json.dumps(whole)}
    for kind, file in (("absent", lambda table, key: {k: v for k, v in table.items() if k != key}),
                       ("null", lambda table, key: table | {key: None})):
        reads = {key: changed(whole, file(config, key)) for key in config if key != "model_type"}
        rope = config.get("rope_parameters", {})
        reads |= {f"rope_parameters.{key}": changed(whole, config | {"rope_parameters": file(rope, key)}) for key in rope}
        texts[kind] = json.dumps(reads)
    return Golden("config_defaults", name, "transformers", "configuration classes of transformers", tool_versions("transformers"),
                  tensors={}, texts=texts, folder="config_defaults",
                  note="written: what the class writes of config; absent, null: what it writes otherwise without a key, or where it is null; a word is its refusal")


def cases():
    for name, fields in FAMILIES.items():
        yield one_family(name, fields)
