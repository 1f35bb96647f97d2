// labels: unit
#include "spec/checkpoint/model_file.hpp"

#include <gtest/gtest.h>

namespace assay::spec::model_file_test {
namespace {

TEST(ModelFileSpec, EveryParameterFollowsTheOneBefore) {
  ModelSpec model;
  model.name = "tiny", model.vocab = 11, model.width = 8, model.layers = 1, model.heads = 2;
  model.kv_heads = 1, model.head_dim = 4, model.ffn = 12, model.context = 8;
  const Inventory parameters = inventory(model);
  const safetensors::Header header = header_of(parameters, "BF16");
  ASSERT_EQ(header.tensors.size(), parameters.parameters.size());
  std::uint64_t position = 0;
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const safetensors::Tensor& tensor = header.tensors[i];
    EXPECT_EQ(tensor.name, parameters.parameters[i].name);
    EXPECT_EQ(tensor.shape, parameters.parameters[i].shape);
    EXPECT_EQ(tensor.dtype, "BF16");
    EXPECT_EQ(tensor.begin, position);
    position += 2 * static_cast<std::uint64_t>(parameters.parameters[i].size);
    EXPECT_EQ(tensor.end, position);
  }
  const std::string bytes = safetensors::serialize(header);
  safetensors::Header read =
      safetensors::parse(std::as_bytes(std::span(bytes)), bytes.size() + position, "model");
  read.data_offset = 0;
  EXPECT_EQ(read, header);
}

}  // namespace
}  // namespace assay::spec::model_file_test
