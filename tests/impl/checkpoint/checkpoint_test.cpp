// labels: unit fault
#include "impl/checkpoint/checkpoint.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/inspect.hpp"
#include "impl/checkpoint/newest_whole.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "impl/machine/host_name.hpp"
#include "impl/model/views.hpp"
#include "spec/error.hpp"
#include "spec/random/philox.hpp"
#include "spec/text/file.hpp"
#include "tests/impl/comm/thread_ranks.hpp"

namespace assay::impl::checkpoint::checkpoint_test {
namespace {

namespace fs = std::filesystem;

spec::ModelSpec tiny() {
  spec::ModelSpec model;
  model.name = "tiny";
  model.vocab = 11, model.width = 8, model.layers = 2, model.heads = 2, model.kv_heads = 1,
  model.head_dim = 4;
  model.ffn = 12, model.context = 8;
  return model;
}

/// Buffers whose every value is a function of (seed, buffer, element): a mix of two saves cannot look right.
ParameterBuffers filled(std::uint64_t seed, Dtype dtype = Dtype::f32) {
  ParameterBuffers buffers = allocate(tiny(), dtype, at::kCPU);
  std::uint32_t number = 0;
  for (at::Tensor* buffer : {&buffers.master, &buffers.moment1, &buffers.moment2}) {
    const spec::random::Stream stream(seed, spec::random::Site::test, number++);
    for (const spec::Parameter& parameter : buffers.inventory.parameters)
      for (std::int64_t i = parameter.offset; i < parameter.offset + parameter.size; ++i)
        (*buffer)[i] = stream.normal(static_cast<std::uint64_t>(i));
  }
  if (!buffers.master.is_same(buffers.weights)) buffers.weights.copy_(buffers.master);
  return buffers;
}

bool same(const ParameterBuffers& a, const ParameterBuffers& b) {
  return at::equal(a.weights, b.weights) && at::equal(a.master, b.master) &&
         at::equal(a.moment1, b.moment1) && at::equal(a.moment2, b.moment2);
}

class CheckpointImpl : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "assay_checkpoint_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string directory_;
};

constexpr const char* only_file = "rank-00000-of-00001.safetensors";

/// Only damage within a slice is found while the buffers are filled.
bool found_while_filling(const std::string& message) {
  return message.find("checkpoint_c3: content differs from what was written, in tensor ") !=
         std::string::npos;
}

std::string refusal(const std::string& path) {
  ParameterBuffers buffers = filled(99);
  const ParameterBuffers before = filled(99);
  try {
    load(path, buffers);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    EXPECT_TRUE(found_while_filling(error.what()) || same(buffers, before))
        << "a refused checkpoint changed the buffers: " << error.what();
    return error.what();
  }
  return "accepted";
}

void flip(const fs::path& path, std::uintmax_t position) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(position));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(position));
  file.put(static_cast<char>(byte ^ 0x10));
}

TEST_F(CheckpointImpl, LoadsWhatWasSavedBitForBit) {
  for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    const ParameterBuffers written = filled(1, dtype);
    const std::string run = directory_ + "/" + std::to_string(static_cast<int>(dtype));
    const Saved saved = save(run, written, {.step = 7, .tokens = 700, .config = "a = 1\n"}, 2);
    ParameterBuffers read = allocate(tiny(), dtype, at::kCPU);
    const State state = load(saved.path, read);
    EXPECT_TRUE(same(read, written));
    EXPECT_EQ(state.step, 7);
    EXPECT_EQ(state.tokens, 700);
    EXPECT_EQ(state.config, "a = 1\n");
    EXPECT_EQ(newest(run), saved.path);
  }
}

TEST_F(CheckpointImpl, KeepsBf16StatesAsTheyAreAndRefusesThemForOthers) {
  const auto drawn = [](std::uint64_t seed) {
    ParameterBuffers buffers = allocate(tiny(), Dtype::bf16, at::kCPU, Dtype::bf16);
    const ParameterBuffers from = filled(seed);
    buffers.master.copy_(from.master), buffers.moment1.copy_(from.moment1),
        buffers.moment2.copy_(from.moment2);
    return buffers;
  };
  const ParameterBuffers written = drawn(1);
  const std::string path = save(directory_, written, {.step = 7, .tokens = 700, .config = {}}, 2).path;
  ParameterBuffers read = drawn(2);
  load(path, read);
  EXPECT_TRUE(same(read, written));
  EXPECT_NE(refusal(path).find("checkpoint_c4: state is BF16, this run's is F32"), std::string::npos);
}

TEST_F(CheckpointImpl, KeepsTheNewest) {
  for (std::int64_t step : {1, 2, 3, 4})
    save(directory_, filled(1), {.step = step, .tokens = 0, .config = {}}, 2);
  const auto found = committed_checkpoints(directory_ + "/checkpoints");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].step, 3);
  EXPECT_EQ(found[1].step, 4);
}

TEST_F(CheckpointImpl, KeepsTheBestBesideTheNewest) {
  const fs::path parent = directory_ + "/checkpoints", link = parent / "best";
  const auto at = [&](std::int64_t step, const std::optional<Validated>& validation, bool best = true) {
    const Saved saved =
        save(directory_, filled(1),
             {.step = step, .tokens = 0, .config = {}, .data = {}, .validation = validation}, {1, best});
    EXPECT_FALSE(saved.not_removed) << *saved.not_removed;
    std::string kept;
    for (const Found& found : committed_checkpoints(parent)) kept += std::to_string(found.step) + " ";
    return kept + "best " + (fs::is_symlink(link) ? fs::read_symlink(link).string() : "none");
  };
  EXPECT_EQ(at(1, {}), "1 best none");
  EXPECT_EQ(at(2, Validated{3.5, "a"}), "2 best step_00000002");
  EXPECT_EQ(at(3, Validated{3.5, "a"}), "2 3 best step_00000002") << "the earlier of two";
  EXPECT_EQ(at(4, {}), "2 4 best step_00000002");
  EXPECT_EQ(best_of(directory_)->loss, 3.5);
  EXPECT_EQ(at(5, Validated{3.25, "a"}), "5 best step_00000005");
  EXPECT_EQ(at(6, Validated{9, "a"}), "5 6 best step_00000005");
  EXPECT_EQ(at(7, Validated{9, "b"}), "7 best step_00000007") << "losses of another set are no measure";
  EXPECT_EQ(best_of(directory_)->set, "b");

  // The name leads to what loads, and is no checkpoint of its own.
  ParameterBuffers read = filled(2);
  EXPECT_EQ(load(link.string(), read).step, 7);
  EXPECT_EQ(newest(directory_), (parent / "step_00000007").string());

  EXPECT_EQ(at(8, {}), "7 8 best step_00000007");
  EXPECT_EQ(at(9, {}, false), "9 best none") << "where the best is not kept, no name leads nowhere";
  EXPECT_FALSE(best_of(directory_));
}

// An archive keeps the marker of a checkpoint that a run only links to.
TEST_F(CheckpointImpl, ALinkedCheckpointIsReadAndNeverRemoved) {
  const fs::path parent = directory_ + "/checkpoints", archive = directory_ + "/archive";
  const auto at_step = [](std::int64_t step) { return State{.step = step, .tokens = 0, .config = {}}; };
  const fs::path linked = save(directory_, filled(1), at_step(1), 9).path;
  fs::create_directory(archive);
  fs::rename(linked, archive / "step_00000001");
  fs::create_directory_symlink(archive / "step_00000001", linked);
  const auto found = committed_checkpoints(parent);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].linked);
  for (const std::int64_t step : {2, 3, 4}) {
    const Saved saved = save(directory_, filled(1), at_step(step), 1);
    EXPECT_EQ(saved.not_removed, std::nullopt) << *saved.not_removed;
  }
  EXPECT_EQ(committed_checkpoints(parent).size(), 2u) << "the newest of the run's own, and the link";
  ParameterBuffers read = filled(2);
  EXPECT_EQ(load(linked.string(), read).step, 1);
  // Not even one whose marker is gone: what a link leads to is somebody's.
  fs::remove(archive / "step_00000001/COMMITTED");
  save(directory_, filled(1), at_step(5), 1);
  EXPECT_TRUE(fs::is_symlink(linked));
  EXPECT_TRUE(fs::exists(archive / "step_00000001/manifest.json"));
}

TEST_F(CheckpointImpl, NothingIsSavedBehindALink) {
  const fs::path parent = directory_ + "/checkpoints", elsewhere = directory_ + "/elsewhere";
  fs::create_directory(elsewhere);
  fs::create_directory_symlink(elsewhere, parent);
  try {
    save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2);
    FAIL() << "it was saved";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_NE(std::string(error.what()).find("it is a link"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(fs::is_empty(elsewhere));
}

TEST_F(CheckpointImpl, KeepLargerThanTheCountRemovesNothing) {
  for (std::int64_t step : {1, 2})
    save(directory_, filled(1), {.step = step, .tokens = 0, .config = {}}, 100);
  EXPECT_EQ(committed_checkpoints(directory_ + "/checkpoints").size(), 2u);
}

TEST_F(CheckpointImpl, ADamagedOldOneStaysForTheUserToSeeAndEndsNoSave) {
  const auto at_step = [](std::int64_t step) { return State{.step = step, .tokens = 0, .config = {}}; };
  const fs::path marker_too_long = save(directory_, filled(1), at_step(1), 9).path;
  const fs::path manifest_too_long = save(directory_, filled(1), at_step(2), 9).path;
  fs::resize_file(marker_too_long / marker_name, 100);
  fs::resize_file(manifest_too_long / manifest_name, spec::file_limits::manifest.bytes + 1);
  for (const std::int64_t step : {3, 4, 5})
    EXPECT_FALSE(save(directory_, filled(1), at_step(step), 2).not_removed.has_value());
  EXPECT_TRUE(fs::exists(marker_too_long));
  EXPECT_TRUE(fs::exists(manifest_too_long));
  const auto found = committed_checkpoints(directory_ + "/checkpoints");
  ASSERT_EQ(found.size(), 2u) << "what is damaged does not count";
  EXPECT_EQ(found[0].step, 4);
  EXPECT_NE(refusal(marker_too_long).find("checkpoint_c1"), std::string::npos);
}

/// Every byte of such a copy is as it was written.
TEST_F(CheckpointImpl, C6AWholeCheckpointUnderTheNameOfAnotherStepDoesNotCount) {
  const auto at_step = [](std::int64_t step) { return State{.step = step, .tokens = 0, .config = {}}; };
  const fs::path first = save(directory_, filled(1), at_step(1), 9).path,
                 second = save(directory_, filled(2), at_step(2), 9).path,
                 copy = first.parent_path() / folder_name(5), elsewhere = directory_ + "/a copy";
  fs::copy(first, copy, fs::copy_options::recursive);
  fs::copy(first, elsewhere, fs::copy_options::recursive);
  const std::string said = "step_00000005: checkpoint_c6: holds step 1, and its name says step 5";
  EXPECT_NE(refusal(copy).find(said), std::string::npos) << refusal(copy);
  EXPECT_NE(refusal(copy.string() + "/").find("checkpoint_c6"), std::string::npos);
  EXPECT_EQ(refusal(elsewhere), "accepted") << "that name says no step";
  const auto refused_as_whole = [&](const auto& read) {
    try {
      read();
      ADD_FAILURE() << "it was taken for step 5";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      EXPECT_NE(std::string(error.what()).find("checkpoint_c6"), std::string::npos) << error.what();
    }
  };
  refused_as_whole([&] { read_state(copy); });
  refused_as_whole([&] { content_of(copy); });
  refused_as_whole([&] { step_of(copy); });
  refused_as_whole([&] { verify_checkpoint(copy); });
  refused_as_whole([&] { verify_checkpoint(directory_); });  // the newest, by its name
  refused_as_whole([&] { show_checkpoint(copy); });
  refused_as_whole([&] { StoredState stored(copy); });
  const NewestWhole newest = newest_whole(directory_);
  EXPECT_EQ(newest.path, second.string());
  ASSERT_EQ(newest.passed_over.size(), 1u);
  EXPECT_NE(newest.passed_over[0].why.find("checkpoint_c6"), std::string::npos);
  // Nor does retention keep it in place of one that is what its name says.
  save(directory_, filled(3), at_step(3), 2);
  const auto kept = committed_checkpoints(copy.parent_path());
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].step, 2);
  EXPECT_EQ(kept[1].step, 3);
  EXPECT_TRUE(fs::exists(copy)) << "it is left for the user to see";
}

TEST_F(CheckpointImpl, C1RefusesAFolderWithoutMarkerAndOneWithAnother) {
  const std::string path = save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2).path;
  flip(path + "/COMMITTED", 3);
  EXPECT_NE(refusal(path).find("checkpoint_c1"), std::string::npos);
  EXPECT_EQ(newest(directory_), path) << "damage is to be refused by name, not passed over";
  fs::remove(path + "/COMMITTED");
  EXPECT_NE(refusal(path).find("checkpoint_c1"), std::string::npos);
  EXPECT_EQ(newest(directory_), std::nullopt);
}

TEST_F(CheckpointImpl, C3RefusesEveryFlippedByteOfEveryFileByName) {
  const std::string path = save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2).path;
  for (const auto& entry : fs::directory_iterator(path)) {
    const auto size = fs::file_size(entry.path());
    const bool tensors = entry.path().extension() == ".safetensors";
    for (std::uintmax_t position = 0; position < size; position += tensors ? 61 : 7) {
      flip(entry.path(), position);
      const std::string message = refusal(path);
      EXPECT_NE(message.find(tensors ? "checkpoint_c3" : "checkpoint_c1"), std::string::npos) << message;
      if (tensors) {
        EXPECT_NE(message.find(entry.path().filename().string()), std::string::npos) << message;
      }
      flip(entry.path(), position);
    }
  }
  ParameterBuffers read = filled(2);
  EXPECT_NO_THROW(load(path, read)) << "the flips were not undone: the test proved nothing";
}

TEST_F(CheckpointImpl, C3NamesTheDamagedTensor) {
  const std::string path = save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2).path;
  const std::string file = path + "/" + only_file;
  flip(file, fs::file_size(file) - 3);
  const std::string message = refusal(path);
  EXPECT_NE(message.find(only_file), std::string::npos) << message;
  EXPECT_NE(message.find("tensor moment2/lm_head.weight"), std::string::npos) << message;
}

TEST_F(CheckpointImpl, C3RefusesTruncationAndMissingAndSwappedFiles) {
  const std::string path = save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2).path,
                    other = save(directory_, filled(2), {.step = 2, .tokens = 0, .config = {}}, 2).path;
  const std::string file = path + "/" + only_file, aside = directory_ + "/aside";
  const auto size = fs::file_size(file);
  fs::copy_file(file, aside);
  fs::resize_file(file, size - 1);
  EXPECT_NE(refusal(path).find("checkpoint_c3"), std::string::npos);
  fs::remove(file);
  EXPECT_NE(refusal(path).find(only_file), std::string::npos);
  fs::copy_file(other + "/" + only_file, file);  // same size, same header, other content
  EXPECT_NE(refusal(path).find("checkpoint_c3"), std::string::npos);
  fs::copy_file(aside, file, fs::copy_options::overwrite_existing);
  ParameterBuffers read = filled(2);
  EXPECT_NO_THROW(load(path, read));
}

/// What the ranks throw that load `paths`, one each, together.
std::vector<std::string> refusals(const std::vector<std::string>& paths) {
  std::vector<std::string> texts(paths.size());
  const ParameterBuffers before = filled(99);
  tests::on_thread_ranks(static_cast<int>(paths.size()), [&](Communicator& communicator) {
    ParameterBuffers buffers = filled(99);
    std::string& text = texts[static_cast<std::size_t>(communicator.rank())];
    try {
      load(paths[static_cast<std::size_t>(communicator.rank())], buffers, communicator);
      text = "accepted";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      EXPECT_TRUE(found_while_filling(error.what()) || same(buffers, before))
          << "a refused checkpoint changed the buffers: " << error.what();
      text = error.what();
    }
  });
  return texts;
}

/// Flips bytes of the tensor files of `damaged`: each is refused by all, and named. Where ranks see other
/// files, one that sees it has found it, and is named, too.
void expect_every_flip_refused(const std::string& damaged, const std::vector<std::string>& paths) {
  const bool shared = std::ranges::count(paths, damaged) == std::ssize(paths);
  for (const auto& entry : fs::directory_iterator(damaged)) {
    if (entry.path().extension() != ".safetensors") continue;
    const std::string says = entry.path().string() + ": checkpoint_c3";
    std::vector<std::string> named;  // one rank of those that see the file
    for (std::size_t rank = 0; rank < paths.size(); ++rank)
      if (paths[rank] == damaged)
        named.push_back("rank " + std::to_string(rank) + " on host " + host_name() + ": " + says);
    for (std::uintmax_t position = 0; position < fs::file_size(entry.path()); position += 173) {
      flip(entry.path(), position);
      const std::vector<std::string> texts = refusals(paths);
      for (const std::string& text : texts) {
        EXPECT_EQ(text, texts[0]);
        const auto ranks =
            std::ranges::count_if(named, [&](const auto& start) { return text.starts_with(start); });
        EXPECT_TRUE(ranks == 1 || (shared && text.starts_with(says))) << position << ": " << text;
      }
      flip(entry.path(), position);
    }
  }
  for (const std::string& text : refusals(paths)) EXPECT_EQ(text, "accepted");
}

TEST_F(CheckpointImpl, C3WhatOneRankFindsAllRefuse) {
  const std::string path = save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2).path;
  for (const std::size_t ranks : {2u, 5u}) expect_every_flip_refused(path, std::vector(ranks, path));
}

TEST_F(CheckpointImpl, TheRankThatFindsADamagedFileIsNamed) {
  const std::string path = save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2).path;
  const std::string other = directory_ + "/other";
  fs::copy(path, other, fs::copy_options::recursive);
  for (const auto& entry : fs::directory_iterator(other))
    if (entry.path().extension() == ".safetensors") fs::resize_file(entry.path(), 8);
  for (const std::string& text : refusals({path, path, other, path}))
    EXPECT_TRUE(text.starts_with("rank 2 on host " + host_name() + ": " + other + "/")) << text;
}

/// Two hosts with a copy each: none leaves bytes of its own to the other.
TEST_F(CheckpointImpl, C3RanksThatSeeOtherFilesHashThemAll) {
  const std::string path = save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2).path;
  const std::string other = directory_ + "/other";
  fs::copy(path, other, fs::copy_options::recursive);
  for (const std::string& damaged : {path, other})
    expect_every_flip_refused(damaged, {path, other, other, path});
}

/// Bytes that this thread has read so far.
std::int64_t bytes_read() {
  std::ifstream file("/proc/thread-self/io");
  std::string word;
  std::int64_t bytes = -1;
  file >> word >> bytes;
  return word == "rchar:" ? bytes : -1;
}

/// Which rank hashes what: tests/impl/params/slices_test.cpp. Here: for that nothing more is read.
TEST_F(CheckpointImpl, RanksReadEachByteThatTheyHoldOnce) {
  spec::ModelSpec model = tiny();
  model.vocab = 64, model.width = 64, model.layers = 8, model.ffn = 128;
  const ParameterBuffers written = allocate(model, Dtype::f32, at::kCPU);
  written.master.fill_(0.5), written.moment1.fill_(0.25), written.moment2.fill_(0.125);
  const Saved saved = save(directory_, written, {.step = 1, .tokens = 0, .config = {}}, 1);
  const auto manifest = static_cast<std::int64_t>(fs::file_size(saved.path + "/manifest.json"));
  const std::int64_t tensors = 3 * 4 * written.model.parameter_count().to_int64();
  for (const int ranks : {1, 4, 7})
    tests::on_thread_ranks(ranks, [&](Communicator& communicator) {
      ParameterBuffers read = allocate(model, Dtype::f32, at::kCPU);
      const std::int64_t before = bytes_read();
      ASSERT_GE(before, 0);
      load(saved.path, read, communicator);
      const std::int64_t all = bytes_read() - before;
      EXPECT_GE(all, tensors);
      // Beside them manifest and marker, twice, and on one rank the header of the file.
      EXPECT_LE(all, saved.bytes + 2 * manifest + 4096);
      EXPECT_TRUE(same(read, written));
    });
}

TEST_F(CheckpointImpl, C4RefusesAnotherModelAndAnotherDtype) {
  const std::string path = save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 2).path;
  spec::ModelSpec wider = tiny();
  wider.ffn = 16;
  ParameterBuffers other = allocate(wider, Dtype::f32, at::kCPU);
  EXPECT_THROW(load(path, other), UserError);
  ParameterBuffers twice = allocate(tiny(), Dtype::f64, at::kCPU);
  EXPECT_THROW(load(path, twice), UserError);
}

TEST_F(CheckpointImpl, C5NeverSavesANonFiniteValue) {
  save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 1);
  ParameterBuffers bad = filled(2);
  view(bad.moment2, bad.inventory.at("model.norm.weight"))[0] = std::numeric_limits<float>::quiet_NaN();
  try {
    save(directory_, bad, {.step = 2, .tokens = 0, .config = {}}, 1);
    FAIL() << "saved";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::non_finite);
    EXPECT_NE(std::string(error.what()).find("model.norm.weight"), std::string::npos);
  }
  ParameterBuffers read = filled(3);
  EXPECT_EQ(load(*newest(directory_), read).step, 1);
}

/// Address space of this process [B].
std::int64_t address_space() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

TEST_F(CheckpointImpl, LoadingTakesNoMemoryForWholeFiles) {
  spec::ModelSpec model = tiny();
  // Files large beside what malloc keeps of pieces that were freed, which differs with what ran before.
  model.vocab = 4096, model.width = 128, model.layers = 48, model.ffn = 512;
  const ParameterBuffers written = allocate(model, Dtype::f32, at::kCPU);
  written.master.fill_(0.5), written.moment1.fill_(0.25), written.moment2.fill_(0.125);
  const std::string path = save(directory_, written, {.step = 1, .tokens = 0, .config = {}}, 1).path;
  const auto file_bytes = static_cast<std::int64_t>(fs::file_size(path + "/" + only_file));
  const std::int64_t largest = written.inventory.at("lm_head.weight").size * 4, piece = 4 << 20;
  ASSERT_LT(largest + piece, file_bytes / 2) << "the limit below would not be one";
  at::set_num_threads(1);  // a forked child has no thread pool
  const pid_t child = fork();
  if (child == 0) {
    ParameterBuffers read = allocate(model, Dtype::f32, at::kCPU);
    const auto most = static_cast<rlim_t>(address_space() + file_bytes / 2 + (2 << 20));
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    try {
      load(path, read);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the child cannot load: %s\n", error.what());
      _exit(1);
    }
    _exit(same(read, written) ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(CheckpointImpl, KillAtARandomMomentNeverLosesTheLastCommittedOne) {
  at::set_num_threads(1);  // a forked child has no thread pool
  // How many kills fall into a save depends on how fast the machine writes: trials go on until enough did.
  int killed_while_saving = 0, trial = 0;
  for (; trial < 100 || (killed_while_saving < 25 && trial < 1000); ++trial) {
    const std::string run = directory_ + "/" + std::to_string(trial);
    const spec::random::Stream stream(static_cast<std::uint64_t>(trial), spec::random::Site::test, 9);
    int committed[2];
    ASSERT_EQ(pipe(committed), 0);
    const pid_t child = fork();
    if (child == 0) {
      for (std::int64_t step = 1;; ++step) {
        const ParameterBuffers buffers = filled(static_cast<std::uint64_t>(step));
        save(run, buffers, {.step = step, .tokens = step, .config = {}}, 1);
        if (write(committed[1], &step, sizeof step) != sizeof step) _exit(1);
      }
    }
    close(committed[1]);
    std::int64_t committed_step = 0;
    ASSERT_EQ(read(committed[0], &committed_step, sizeof committed_step),
              static_cast<ssize_t>(sizeof committed_step));
    usleep(static_cast<useconds_t>(stream.below(0, 30000)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (std::int64_t step; read(committed[0], &step, sizeof step) == static_cast<ssize_t>(sizeof step);)
      committed_step = step;
    close(committed[0]);

    const auto path = newest(run);
    ASSERT_TRUE(path.has_value()) << "trial " << trial;
    ParameterBuffers read_back = allocate(tiny(), Dtype::f32, at::kCPU);
    const State state = load(*path, read_back);
    EXPECT_GE(state.step, committed_step) << "trial " << trial;
    EXPECT_TRUE(same(read_back, filled(static_cast<std::uint64_t>(state.step)))) << "trial " << trial;
    for (const auto& entry : fs::directory_iterator(run + "/checkpoints"))
      killed_while_saving += entry.path().filename().string().ends_with(".partial");
    // The next save clears what the kill left.
    save(run, read_back, {.step = state.step + 1, .tokens = 0, .config = {}}, 1);
    EXPECT_EQ(std::distance(fs::directory_iterator(run + "/checkpoints"), {}), 1) << "trial " << trial;
  }
  EXPECT_GE(killed_while_saving, 25) << "too few of " << trial << " kills fell into a save to test anything";
}

TEST_F(CheckpointImpl, AFullDiskIsAnErrorAndKeepsTheOldOne) {
  save(directory_, filled(1), {.step = 1, .tokens = 0, .config = {}}, 1);
  const pid_t child = fork();
  if (child == 0) {
    // A file size limit is a full disk without needing one.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{2048, 2048};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save(directory_, filled(2), {.step = 2, .tokens = 0, .config = {}}, 1);
    } catch (const UserError& error) {
      _exit(static_cast<int>(error.code()));
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::io));
  ParameterBuffers read = filled(3);
  EXPECT_EQ(load(*newest(directory_), read).step, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ + "/checkpoints"), {}), 1)
      << "a partial folder stayed";
}

}  // namespace
}  // namespace assay::impl::checkpoint::checkpoint_test
