#pragma once
// A tokenizer.json of Hugging Face tokenizers, byte-pair encodings alone: over bytes (GPT-2, Llama 3, Qwen,
// OLMo) and over characters with bytes for those that it lacks (Llama 2, Mistral, Mixtral).
#include <memory>
#include <string>

#include "impl/generate/text_codec.hpp"

namespace assay::impl::generate {

/// The ids are those that the package tokenizers gives. Errors: UserError(usage) for a tokenizer of another
/// kind, naming what of it is not read; UserError(bad_data) where the file is damaged. Of encode:
/// UserError(usage) for a text that is no UTF-8, or that its tokenizer would normalise to another.
std::unique_ptr<TextCodec> read_tokenizer(const std::string& path);
/// The same of a text. `origin` starts every message.
std::unique_ptr<TextCodec> tokenizer_of(const std::string& json, const std::string& origin);

}  // namespace assay::impl::generate
