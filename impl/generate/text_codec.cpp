#include "impl/generate/text_codec.hpp"

#include <filesystem>

#include "impl/checkpoint/export.hpp"
#include "impl/generate/loaded_weights.hpp"
#include "impl/generate/tokenizer_file.hpp"

namespace assay::impl::generate {

namespace {
class BytesCodec final : public TextCodec {
 public:
  std::vector<std::int64_t> encode(const std::string& text) const override {
    std::vector<std::int64_t> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  std::string decode(std::int64_t id) const override { return {static_cast<char>(id)}; }
};
}  // namespace

std::unique_ptr<TextCodec> codec_of(const WeightsPlace& place, std::string& why) {
  namespace fs = std::filesystem;
  std::string looked;
  for (const std::string& folder : place.folders) {
    const fs::path file = fs::path(folder) / "tokenizer.json";
    std::error_code unknown;
    if (fs::exists(file, unknown)) {
      checkpoint::require_tokenizer(place.manifest, file.string(),
                                    "; put that one back, or give --ids 5,17,3");
      return read_tokenizer(file.string());
    }
    looked += (looked.empty() ? "" : ", ") + folder;
  }
  constexpr std::int64_t bytes = 256;
  if (place.model.vocab == bytes) return std::make_unique<BytesCodec>();
  why = "no tokenizer.json is in " + (looked.empty() ? place.path : looked);
  return nullptr;
}

}  // namespace assay::impl::generate
