"""Writes golden files: `python -m golden.generate --out FOLDER [NAME ...]`, NAME like ops/rms_norm/basic or ops/rope."""

import argparse
import importlib
import pkgutil
import sys

from . import ops

sys.dont_write_bytecode = True


def all_cases(wanted):
    """Golden objects generator by generator; generators that hold nothing of `wanted` are not run (all when empty)."""
    modules = [("config_defaults", "config_defaults"), ("config_keys", "config_keys"), ("flops", "flops"),
               ("formats", "formats"), ("greedy", "greedy"), ("models", "models"),
               ("model_inventories", "model_inventories"), ("tensorboard", "tensorboard"), ("tokenizers", "tokenizers"),
               ("weights", "weights")]
    modules += [(f"ops/{info.name}", f"ops.{info.name}") for info in pkgutil.iter_modules(ops.__path__)]
    for folder, module in sorted(modules):
        if not wanted or any(f"{folder}/".startswith(f"{name}/") or name.startswith(f"{folder}/") for name in wanted):
            yield from importlib.import_module(f"{__package__}.{module}").cases()


def main():
    parser = argparse.ArgumentParser(prog="python -m golden.generate", description=__doc__)
    parser.add_argument("--out", required=True, help="folder to write into")
    parser.add_argument("names", nargs="*", help="cases or their leading folders; all when none")
    arguments = parser.parse_args()
    written = 0
    for golden in all_cases(arguments.names):
        if not arguments.names or any(f"{golden.name}/".startswith(f"{name}/") for name in arguments.names):
            print(golden.write(arguments.out), file=sys.stderr)
            written += 1
    if not written:
        parser.error(f"no case is named {' or '.join(arguments.names)}")


if __name__ == "__main__":
    main()
