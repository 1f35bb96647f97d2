// labels: unit property fault
// Checkpoints of slices: saved in one layout, loaded in another; what is read for it; what damage is found.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/inspect.hpp"
#include "impl/checkpoint/reshard.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "spec/error.hpp"
#include "spec/random/philox.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/impl/params/layout_state.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::checkpoint::slices_of_layouts_test {
namespace {

namespace fs = std::filesystem;
using tests::RankState;
using tests::StateLayout;

struct Kind {
  Dtype dtype, states;
};
constexpr Kind kinds[] = {{Dtype::f64, Dtype::f32},
                          {Dtype::f32, Dtype::f32},
                          {Dtype::bf16, Dtype::f32},
                          {Dtype::bf16, Dtype::bf16}};

std::string saved(const spec::ModelSpec& model, const StateLayout& layout, const Kind& kind,
                  std::uint64_t seed, const std::string& folder, std::int64_t step, std::int64_t keep = 5) {
  std::string path;
  tests::on_thread_ranks(layout.ranks(), [&](Communicator& communicator) {
    RankState state(model, communicator, layout, kind.dtype, kind.states);
    state.fill(seed);
    const Saved done =
        save(folder, state.buffers, {.step = step, .tokens = 9, .config = "a"}, keep, state.groups);
    if (communicator.rank() == 0) path = done.path;
  });
  return path;
}

/// What is other than it was saved, on any rank; empty: nothing.
std::string other_when_loaded(const std::string& path, const spec::ModelSpec& model,
                              const StateLayout& layout, const Kind& kind, std::uint64_t seed) {
  std::string other;
  std::mutex mutex;
  tests::on_thread_ranks(layout.ranks(), [&](Communicator& communicator) {
    RankState state(model, communicator, layout, kind.dtype, kind.states);
    load(path, state.buffers, state.groups);
    const std::scoped_lock lock(mutex);
    if (const std::string mine = state.first_other(seed); !mine.empty()) other = mine;
  });
  return other;
}

std::string refusal(const std::string& path, const spec::ModelSpec& model, const StateLayout& layout,
                    const Kind& kind) {
  try {
    other_when_loaded(path, model, layout, kind, 0);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  return "accepted";
}

RC_GTEST_PROP(SlicesOfLayoutsProperty, SavedInOneLayoutLoadedInAnotherBitForBit, ()) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const bool experts = *rc::gen::arbitrary<bool>();
  const std::size_t a = *rc::gen::arbitrary<std::size_t>(), b = *rc::gen::arbitrary<std::size_t>(),
                    k = *rc::gen::inRange<std::size_t>(0, std::size(kinds));
  const auto files = *rc::gen::inRange<std::int64_t>(1, 9);
  const spec::ModelSpec model = tests::case_model({.seed = seed,
                                                   .tensor = seed % 2 ? 4 : 2,
                                                   .vocab = 11 + static_cast<std::int64_t>(seed % 13),
                                                   .experts = experts,
                                                   .expert = experts && seed % 3 == 0 ? 4 : 1});
  const std::vector<StateLayout> layouts = tests::state_layouts(model, 8);
  const StateLayout &from = layouts[a % layouts.size()], &to = layouts[b % layouts.size()];
  RC_LOG() << from.name() << " -> " << to.name() << "\n";
  const tests::Scratch scratch;
  const std::string path = saved(model, from, kinds[k], seed, scratch.path().string(), 2);
  RC_ASSERT(other_when_loaded(path, model, to, kinds[k], seed) == "");
  RC_ASSERT(verify_checkpoint(path).size() == 1u);
  const std::string other = (scratch.path() / "resharded").string();
  reshard({.checkpoint = path, .folder = other, .files = files});
  RC_ASSERT(verify_checkpoint(other).size() == 1u);
  RC_ASSERT(other_when_loaded(other, model, to, kinds[k], seed) == "");
}

/// Bytes that this thread has read so far.
std::int64_t bytes_read() {
  std::ifstream file("/proc/thread-self/io");
  std::string word;
  std::int64_t bytes = -1;
  file >> word >> bytes;
  return word == "rchar:" ? bytes : -1;
}

TEST(SlicesOfLayoutsImpl, FourRanksReadInAnotherLayoutWhatTheyHoldAndNoMore) {
  spec::ModelSpec model = tests::case_model({.seed = 11, .tensor = 4, .vocab = 1023});
  model.width = 128, model.ffn = 512, model.layers = 3;
  using spec::DataParallel;
  const StateLayout layouts[] = {{spec::layout_of(DataParallel::replicate, 4)},
                                 {spec::layout_of(DataParallel::zero1, 4)},
                                 {spec::layout_of(DataParallel::shard, 4)},
                                 {spec::layout_of(DataParallel::hybrid, 4, 2)},
                                 {spec::Layout{}, 4},
                                 {spec::layout_of(DataParallel::shard, 2), 2},
                                 {spec::layout_of(DataParallel::shard, 3)}};
  const Kind kind{Dtype::bf16, Dtype::f32};
  for (const StateLayout& from : layouts) {
    const tests::Scratch scratch;
    const std::string path = saved(model, from, kind, 5, scratch.path().string(), 1);
    for (const StateLayout& to : layouts) {
      if (to.ranks() != 4) continue;
      tests::on_thread_ranks(4, [&](Communicator& communicator) {
        RankState state(model, communicator, to, kind.dtype, kind.states);
        const std::int64_t before = bytes_read();
        load(path, state.buffers, state.groups);
        const auto read = static_cast<double>(bytes_read() - before),
                   needed = static_cast<double>(state.needed_bytes());
        EXPECT_GE(read, needed);
        EXPECT_LE(read, 1.1 * needed) << from.name() << " -> " << to.name();
        EXPECT_EQ(state.first_other(5), "");
      });
    }
  }
}

void flip(const fs::path& path, std::uintmax_t position, int bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(position));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(position));
  file.put(static_cast<char>(byte ^ (1 << bit)));
}

/// 1,000 flipped bits and cut files, drawn over slices, headers, index and marker: each is refused by whoever
/// loads and by verify, and the checkpoint before stays.
TEST(SlicesOfLayoutsImpl, EachFlippedBitAndEachCutFileIsFoundAndTheOneBeforeStays) {
  at::set_num_threads(1);
  const spec::ModelSpec model = tests::case_model({.seed = 11, .tensor = 2, .vocab = 23});
  const StateLayout from{spec::layout_of(spec::DataParallel::shard, 2), 2, 1};
  const Kind kind{Dtype::f32, Dtype::f32};
  const tests::Scratch scratch;
  const std::string folder = scratch.path().string();
  const std::string before = saved(model, from, kind, 1, folder, 1),
                    path = saved(model, from, kind, 2, folder, 2);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 6u) << "4 ranks' files, manifest and marker";
  const StateLayout loaders[] = {{}, {spec::layout_of(spec::DataParallel::replicate, 3)}, from};
  int found = 0;
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const spec::random::Stream draw(trial, spec::random::Site::test, 5);
    const fs::path& file = files[draw.below(0, files.size())];
    const std::uintmax_t size = fs::file_size(file), at = draw.below(1, size);
    const bool cut = draw.below(2, 4) == 0;
    const std::string whole = cut ? read_whole(file, spec::file_limits::manifest) : "";
    if (cut)
      fs::resize_file(file, at);
    else
      flip(file, at, static_cast<int>(draw.below(3, 8)));
    const std::string text = refusal(path, model, loaders[trial % 3 == 0 ? trial % 9 / 3 : 0], kind);
    EXPECT_NE(text.find("checkpoint_c"), std::string::npos) << file << " " << at << ": " << text;
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_THROW(verify_checkpoint(path), UserError) << file << " " << at;
    found += text != "accepted";
    if (cut)
      std::ofstream(file, std::ios::binary) << whole;
    else
      flip(file, at, static_cast<int>(draw.below(3, 8)));
  }
  EXPECT_EQ(found, 1000);
  EXPECT_EQ(other_when_loaded(path, model, {}, kind, 2), "")
      << "damage was not undone: the test proved nothing";
  EXPECT_EQ(other_when_loaded(before, model, from, kind, 1), "");
}

/// An index whose hashes are right and whose slices are not the whole.
TEST(SlicesOfLayoutsImpl, C4RefusesAnIndexThatIsNotTheWholeOnce) {
  const spec::ModelSpec model = tests::case_model({.seed = 11, .tensor = 2, .vocab = 23});
  const tests::Scratch scratch;
  const std::string path = saved(model, {spec::layout_of(spec::DataParallel::shard, 2), 1, 1}, kinds[1], 1,
                                 scratch.path().string(), 1);
  const Manifest whole = read_manifest(path);
  const auto refused = [&](const std::function<void(Manifest&)>& change) {
    Manifest changed = whole;
    change(changed);
    fs::remove(fs::path(path) / manifest_name), fs::remove(fs::path(path) / marker_name);
    write_manifest(OutputFolder(path), changed);
    return refusal(path, model, {}, kinds[1]);
  };
  EXPECT_EQ(refused([](Manifest&) {}), "accepted");
  EXPECT_NE(refused([](Manifest& m) { m.files[0].slices.pop_back(); }).find("checkpoint_c4"),
            std::string::npos);
  EXPECT_NE(
      refused([](Manifest& m) { m.files[0].slices.push_back(m.files[0].slices[0]); }).find("is there twice"),
      std::string::npos);
  EXPECT_NE(refused([](Manifest& m) { ++m.files[0].slices[0].slice.row; }).find("checkpoint_c4"),
            std::string::npos);
  EXPECT_NE(refused([](Manifest& m) { m.parameters.pop_back(); }).find("checkpoint_c4"), std::string::npos);
  EXPECT_NE(refused([](Manifest& m) { m.parameters[0].dtype = "F64"; }).find("is F64, the model's is F32"),
            std::string::npos);
}

/// Slices of all ranks, and what is not theirs: names, and no trace of the save itself.
TEST(SlicesOfLayoutsImpl, FilesHaveOneSafetensorsForEachRank) {
  const spec::ModelSpec model = tests::case_model({.seed = 11, .tensor = 2, .vocab = 23});
  const tests::Scratch scratch;
  const std::string path = saved(model, {spec::layout_of(spec::DataParallel::shard, 2), 2, 1}, kinds[1], 1,
                                 scratch.path().string(), 1);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"COMMITTED", "manifest.json", "rank-00000-of-00004.safetensors",
                                      "rank-00001-of-00004.safetensors", "rank-00002-of-00004.safetensors",
                                      "rank-00003-of-00004.safetensors"}));
  const StoredState stored{fs::path(path)};
  std::int64_t elements = 0;
  for (const FileEntry& file : stored.manifest().files)
    for (const SliceEntry& slice : file.slices) elements += slice.slice.size();
  EXPECT_EQ(elements, 3 * spec::inventory(model).parameter_count().to_int64());
}

class FirstForm : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(path_)) GTEST_SKIP() << "the sources are not on this machine: " << path_;
    model_ = spec::model_from_toml(read_manifest(path_).model, path_);
  }
  const std::string path_ = tests::source_dir() + "/tests/impl/checkpoint/schema_1";
  spec::ModelSpec model_;
};

/// Saved by the version before slices: by its own hashes the values are those that it wrote.
TEST_F(FirstForm, LoadsInEveryLayout) {
  const Manifest manifest = read_manifest(path_);
  ASSERT_EQ(manifest.schema, 1);
  ParameterBuffers alone = allocate(model_, Dtype::f32, at::kCPU);
  EXPECT_EQ(load(path_, alone).step, 3);
  const Buffer parts[] = {&ParameterBuffers::master, &ParameterBuffers::moment1, &ParameterBuffers::moment2};
  std::size_t compared = 0;
  for (std::size_t part = 0; part < 3; ++part)
    for (const HeldSlice& held : held_slices(alone, parts[part])) {
      const at::Tensor values = held.values.contiguous();
      const std::string hash = content_hash({static_cast<const std::byte*>(values.const_data_ptr()),
                                             static_cast<std::size_t>(values.nbytes())});
      const auto& tensors = manifest.files.at(part).slices;
      const auto tensor = std::find_if(tensors.begin(), tensors.end(), [&](const SliceEntry& each) {
        return each.parameter == alone.model.parameters[held.number].name;
      });
      ASSERT_NE(tensor, tensors.end());
      EXPECT_EQ(tensor->hash, hash) << tensor->parameter;
      ++compared;
    }
  EXPECT_EQ(compared, 3 * alone.model.parameters.size());
  for (const StateLayout& layout : tests::state_layouts(model_, 4))
    tests::on_thread_ranks(layout.ranks(), [&](Communicator& communicator) {
      RankState state(model_, communicator, layout, Dtype::f32);
      load(path_, state.buffers, state.groups);
      for (const Buffer part : parts)
        for (const HeldSlice& held : held_slices(state.buffers, part)) {
          const spec::Slice& at = held.slice;
          const spec::Parameter& own = alone.inventory.parameters[held.number];
          EXPECT_TRUE(at::equal(held.values, (alone.*part)
                                                 .narrow(0, own.offset, own.size)
                                                 .view({own.shape.front(), -1})
                                                 .narrow(0, at.row, at.rows)
                                                 .narrow(1, at.column, at.columns)))
              << layout.name() << " " << own.name;
        }
    });
}

TEST_F(FirstForm, IsShownVerifiedAndResharded) {
  EXPECT_EQ(verify_checkpoint(path_).at(0).text.find("every hash of 3 files"), path_.size() + 2);
  std::string shown;
  for (const ShownLine& line : show_checkpoint(path_)) shown += line.name + " " + line.text + "\n";
  EXPECT_NE(shown.find("schema 1"), std::string::npos) << shown;
  const tests::Scratch scratch;
  const std::string other = (scratch.path() / "other").string();
  EXPECT_EQ(reshard({.checkpoint = path_, .folder = other, .files = 2}).step, 3);
  EXPECT_EQ(read_manifest(other).schema, 2);
  ParameterBuffers before = allocate(model_, Dtype::f32, at::kCPU),
                   after = allocate(model_, Dtype::f32, at::kCPU);
  load(path_, before), load(other, after);
  EXPECT_TRUE(at::equal(before.master, after.master));
  EXPECT_TRUE(at::equal(before.moment1, after.moment1));
  EXPECT_TRUE(at::equal(before.moment2, after.moment2));
}

TEST_F(FirstForm, EachFlippedByteIsFound) {
  const tests::Scratch scratch;
  const fs::path copy = scratch.path() / "copy";
  fs::copy(path_, copy);
  const std::string path = copy.string();
  for (const auto& entry : fs::directory_iterator(copy))
    for (std::uintmax_t at = 0; at < fs::file_size(entry.path()); at += 613) {
      flip(entry.path(), at, 4);
      EXPECT_NE(refusal(path, model_, {}, kinds[1]), "accepted") << entry.path() << " " << at;
      EXPECT_NE(refusal(path, model_, {spec::layout_of(spec::DataParallel::shard, 2)}, kinds[1]), "accepted");
      EXPECT_THROW(verify_checkpoint(path), UserError);
      flip(entry.path(), at, 4);
    }
  EXPECT_EQ(refusal(path, model_, {}, kinds[1]), "accepted");
}

}  // namespace
}  // namespace assay::impl::checkpoint::slices_of_layouts_test
