// `assay-train --generate`: `assay generate` where the tensors are.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>

#include "impl/cli/verb.hpp"
#include "impl/generate/generate.hpp"
#include "impl/generate/loaded_weights.hpp"
#include "impl/generate/text_codec.hpp"
#include "impl/machine/device_choice.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/start/on_ranks.hpp"
#include "spec/error.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

using generate::Ids;

std::string joined(const Ids& ids, const char* between) {
  std::string out;
  for (const std::int64_t id : ids) out += (out.empty() ? "" : between) + std::to_string(id);
  return out;
}

/// Standard input to its end, without the line end there.
std::string standard_input() {
  constexpr std::size_t most = 16 << 20;  // [B]
  std::string text(most + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  if (text.size() > most) throw UserError(ExitCode::usage, "--prompt -: standard input is above 16 MiB");
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

/// The prompts as the user gave them; of a run of the grammar an empty one where there are none. None: ids.
std::vector<std::string> texts_of(const GeneratePlan& asked, bool of_grammar) {
  std::vector<std::string> texts = asked.prompts;
  for (std::string& text : texts)
    if (text == "-") text = standard_input();
  if (!texts.empty() || !asked.ids.empty()) return texts;
  if (!of_grammar) throw UserError(ExitCode::usage, "no prompt; give --prompt \"...\", or --ids 5,17,3");
  return {""};
}

/// The prompts as ids. `codec` may be null.
std::vector<Ids> prompts_of(const GeneratePlan& asked, const std::vector<std::string>& texts, bool of_grammar,
                            const generate::WeightsPlace& place, const generate::TextCodec* codec,
                            const std::string& why) {
  std::vector<Ids> prompts = asked.ids;
  if (!texts.empty() && !codec) throw UserError(ExitCode::usage, why + "; give --ids 5,17,3");
  // The grammar's sentences begin behind a line end.
  for (const std::string& text : texts) prompts.push_back(codec->encode((of_grammar ? "\n" : "") + text));
  for (const Ids& prompt : prompts) {
    if (prompt.empty())
      throw UserError(ExitCode::usage, "a prompt without a token: the model goes on from one at least");
    for (const std::int64_t id : prompt)
      if (id >= place.model.vocab)
        throw UserError(ExitCode::usage,
                        "token id " + std::to_string(id) + " of a prompt is not in the vocabulary of " +
                            spec::quote(place.model.name) + ", " + std::to_string(place.model.vocab) +
                            " entries; is the tokenizer this model's?");
  }
  return prompts;
}

std::int64_t new_tokens(const GeneratePlan& asked, const spec::ModelSpec& model,
                        const std::vector<Ids>& prompts) {
  constexpr std::int64_t usual = 128;
  std::size_t longest = 0;
  for (const Ids& prompt : prompts) longest = std::max(longest, prompt.size());
  const std::int64_t room = model.context - static_cast<std::int64_t>(longest);
  if (room < asked.most.value_or(1))
    throw UserError(ExitCode::usage, "a prompt of " + spec::grouped(static_cast<std::int64_t>(longest)) +
                                         " tokens and " + spec::grouped(asked.most.value_or(1)) +
                                         " new ones exceed the context of " + spec::quote(model.name) + ", " +
                                         spec::grouped(model.context) +
                                         " tokens; shorten the prompt or lower --tokens");
  return asked.most.value_or(std::min(usual, room));
}

std::string json_of(const generate::Request& request, const std::vector<Ids>& texts,
                    const std::vector<std::string>& shown, const generate::TextCodec* codec,
                    const generate::WeightsPlace& place) {
  std::string out = "{\"model\": " + spec::json_string(place.model.name) +
                    ", \"weights\": " + spec::json_string(place.path) + ", \"texts\": [";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool ended =
        !texts[i].empty() && std::ranges::find(request.ends, texts[i].back()) != request.ends.end();
    out += std::string(i ? "," : "") + "\n {\"prompt_ids\": [" + joined(request.prompts[i], ", ") +
           "], \"ids\": [" + joined(texts[i], ", ") + "], \"ended\": " + (ended ? "true" : "false");
    if (codec)
      out += ", \"prompt\": " + spec::json_string(shown[i]) +
             ", \"text\": " + spec::json_string(codec->decode(texts[i]));
    out += "}";
  }
  return out + "\n]}\n";
}

void print(const std::vector<Ids>& texts, const std::vector<std::string>& shown,
           const generate::TextCodec* codec, Streams streams) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0 && codec) streams.out << "---\n";
    const std::string text = codec ? shown[i] + codec->decode(texts[i]) : joined(texts[i], " ");
    streams.out << text << (text.ends_with('\n') ? "" : "\n");
  }
}

int generate_here(const GeneratePlan& asked, const run::DeviceChoice& choice, Streams streams) {
  if (choice.notice) streams.err << "assay: warning: " << *choice.notice << "\n";
  const generate::WeightsPlace place = generate::find_weights(asked.path);
  const bool of_grammar = !place.hugging_face && place.config.data_paths.empty();
  const std::vector<std::string> shown = texts_of(asked, of_grammar);
  std::string why;
  const auto codec = asked.ids.empty() ? generate::codec_of(place, why) : nullptr;
  generate::Request request{.prompts = prompts_of(asked, shown, of_grammar, place, codec.get(), why),
                            .most = 0,
                            .sampling = {.temperature = asked.temperature,
                                         .top_p = asked.top_p,
                                         .seed = static_cast<std::uint64_t>(asked.seed)},
                            .ends = place.ends};
  request.most = new_tokens(asked, place.model, request.prompts);
  const Dtype dtype = asked.dtype.value_or(choice.device.is_cuda() ? Dtype::bf16 : Dtype::f32);
  generate::LoadedWeights weights(place, scalar_type(dtype), choice.device);
  std::size_t longest = 0;
  for (const Ids& prompt : request.prompts) longest = std::max(longest, prompt.size());
  Model model(place.model, weights, static_cast<std::int64_t>(longest) + request.most, scalar_type(dtype),
              choice.device);
  // One text is shown as it grows.
  const bool grows = codec && request.prompts.size() == 1 && !asked.json;
  generate::Hooks hooks;
  std::optional<generate::TextDecoder> decoder;
  char last = '\n';
  const auto show = [&](const std::string& text) {
    if (!text.empty()) last = text.back();
    streams.out << text << std::flush;
  };
  if (grows) {
    decoder.emplace(*codec);
    show(shown[0]);
    hooks.drawn = [&](std::size_t, std::int64_t id) { show(decoder->next(id)); };
  }
  const auto begun = std::chrono::steady_clock::now();
  const std::vector<Ids> texts = generate::generate(model, request, hooks);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::int64_t tokens = 0;
  for (const Ids& text : texts) tokens += static_cast<std::int64_t>(text.size());
  if (asked.json)
    streams.out << json_of(request, texts, shown, codec.get(), place);
  else if (!grows)
    print(texts, shown, codec.get(), streams);
  else if (show(decoder->rest()); last != '\n')
    streams.out << "\n";
  streams.out << std::flush;
  char rate[64];
  std::snprintf(rate, sizeof rate, "%.3g s, %.3g tokens/s", seconds, static_cast<double>(tokens) / seconds);
  streams.err << place.path << ", " << to_string(dtype) << " on " << choice.device.str() << ": "
              << spec::grouped(tokens) << " new tokens in " << rate << "\n";
  return 0;
}

int generate_on(const GeneratePlan& asked, const run::DeviceChoice& choice, Streams streams) try {
  return generate_here(asked, choice, streams);
} catch (const std::exception& error) {
  if (!run::ran_out_of_memory(error)) throw;
  throw UserError(ExitCode::usage,
                  asked.path +
                      ": its weights and what is kept of a text take more memory than there is; take --dtype "
                      "bf16, fewer --tokens or a smaller model");
}

}  // namespace

int run_generate(const std::vector<std::string>& words, Streams streams) {
  for (const Verb& verb : verbs())
    if (verb.name == "generate") {
      const GeneratePlan asked = generate_plan(parse(words, verb.options, verb.name));
      const auto settings = [&]() -> run::RankSettings { return {.device = asked.device}; };
      return run::on_ranks(settings, [&](const run::Rank& rank) {
        if (rank.communicator.size() > 1)
          throw AgreedError(ExitCode::usage, "`assay generate` runs on one device: start one process");
        return generate_on(asked, rank.choice, streams);
      });
    }
  return static_cast<int>(ExitCode::bug);
}

}  // namespace assay::impl::cli
