// labels: cli fault
// Nobody is let in, and nothing outside is touched: links, special files, closed streams, names in files.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "spec/text/utf8.hpp"
#include "tests/cli/train_program.hpp"

namespace assay::outside_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Everything below a folder, links as what they say.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    out[entry.path().string()] = entry.is_symlink()        ? fs::read_symlink(entry.path()).string()
                                 : entry.is_regular_file() ? text_of(entry.path())
                                                           : "";
  return out;
}

class Outside : public tests::TrainProgram {
 protected:
  /// A run of three steps, each saved: trained once, and copied.
  void a_run() {
    static const tests::Scratch once;
    if (!fs::exists(once.path() / "run")) {
      ASSERT_EQ(
          tests::shell(tests::assay_path() +
                           " train compute.device=cpu compute.threads=1 batch.sequences=4 train.steps=3 "
                           "sample.sentences=2 checkpoint.every=1 checkpoint.keep=9 run.directory=" +
                           (once.path() / "run").string(),
                       120)
              .code,
          0);
    }
    fs::copy(once.path() / "run", path("run"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  fs::path path(const std::string& name) const { return folder(name); }
  /// Moves what a run made to a folder of others and leaves a link.
  void link_away(const fs::path& inside) const {
    fs::create_directories(path("outside"));
    fs::rename(inside, path("outside") / inside.filename());
    fs::create_symlink(path("outside") / inside.filename(), inside);
  }
  std::string resume(const std::string& name, const std::string& more) const {
    return tests::assay_path() + " resume " + folder(name) + " " + more;
  }
};

void expect_one_line(const impl::cli::Outcome& outcome, int code, const std::string& says) {
  EXPECT_EQ(outcome.code, code) << outcome.messages;
  EXPECT_NE(outcome.messages.find(says), std::string::npos) << outcome.messages << "\nlacks: " << says;
  EXPECT_EQ(std::count(outcome.messages.begin(), outcome.messages.end(), '\n'), 1) << outcome.messages;
}

TEST_F(Outside, ARunWritesThroughNoLinkOfItsFolder) {
  a_run();
  for (const char* name : {"run.jsonl", "checkpoints"}) {
    link_away(path("run") / name);
    const auto before = contents(path("outside"));
    expect_one_line(tests::shell(resume("run", "--change train.steps=4")), 74,
                    folder("run") + "/" + name + " is a link");
    EXPECT_EQ(contents(path("outside")), before) << name;
    fs::remove(path("run") / name);
    fs::rename(path("outside") / name, path("run") / name);
  }
  link_away(path("run/report.html"));
  const auto before = contents(path("outside"));
  const auto resumed = tests::shell(resume("run", "--change train.steps=4"));
  EXPECT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_EQ(contents(path("outside")), before);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path("run/report.html"))));
}

TEST_F(Outside, ARunsFolderMayItselfBeALink) {
  fs::create_directory(path("disk"));
  fs::create_directory_symlink(path("disk"), path("run"));
  EXPECT_EQ(train("run", "").code, 0);
  EXPECT_TRUE(fs::exists(path("disk/report.html")));
  EXPECT_TRUE(fs::exists(path("disk/checkpoints/step_00000003/COMMITTED")));
}

TEST_F(Outside, ALinkedCheckpointIsReadAndNeverRemoved) {
  a_run();
  link_away(path("run/checkpoints/step_00000001"));
  const auto before = contents(path("outside"));
  const auto resumed = tests::shell(resume("run", "--change train.steps=6 --change checkpoint.keep=1"));
  EXPECT_EQ(resumed.code, 0) << resumed.messages;
  EXPECT_NE(resumed.messages.find("step_00000001: a link is read as a checkpoint, and never removed"),
            std::string::npos)
      << resumed.messages;
  EXPECT_EQ(contents(path("outside")), before) << "the archive lost something";
  EXPECT_TRUE(fs::is_symlink(path("run/checkpoints/step_00000001")));
  EXPECT_FALSE(fs::exists(path("run/checkpoints/step_00000002"))) << "the run's own ones went";
  EXPECT_TRUE(fs::exists(path("run/checkpoints/step_00000006")));
  // And a run may go on from one.
  const auto branch = tests::shell(tests::assay_path() + " resume " +
                                   folder("run/checkpoints/step_00000001") + " --into " + folder("branch"));
  EXPECT_EQ(branch.code, 0) << branch.messages;
  EXPECT_EQ(contents(path("outside")), before);
}

TEST_F(Outside, StreamsThatAreClosedDoNotBecomeTheRecord) {
  for (const std::string closed : {">&-", "2>&-", ">&- 2>&- <&-"}) {
    const std::string name = "run" + std::to_string(closed.size());
    const auto outcome = train(name, "log.tensorboard=on " + closed);
    EXPECT_EQ(outcome.code, 0) << closed << outcome.messages;
    EXPECT_EQ(run_of(name).steps.size(), 3u) << closed;  // every line is an event
    EXPECT_EQ(text_of(path(name) / "run.jsonl").find("training tiny-llama\n"), std::string::npos);
  }
}

TEST_F(Outside, TheUmaskDecidesWhoReadsARun) {
  const auto outcome =
      tests::shell("umask 027; " + command("run") + " log.tensorboard=on profile.steps=[2,2]", 120);
  ASSERT_EQ(outcome.code, 0) << outcome.messages;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("run"))) {
    ++files;
    EXPECT_EQ(static_cast<int>(entry.status().permissions()), entry.is_directory() ? 0750 : 0640)
        << entry.path();
  }
  EXPECT_GT(files, 8);
}

TEST_F(Outside, SpecialFilesEndInOneLineAtOnce) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(path("fifo.toml").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(path("tokens.bin").c_str(), 0600), 0);
  a_run();
  const std::string assay = tests::assay_path() + " ",
                    read = assay + "train compute.device=cpu data.dtype=uint16 data.paths=";
  const auto ends = [&](const std::string& line, const std::string& says) {
    const auto begin = std::chrono::steady_clock::now();
    const auto outcome = tests::shell(line, 30);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(outcome.code == 2 || outcome.code == 65 || outcome.code == 74)
        << line << ": " << outcome.code;
    EXPECT_NE(outcome.messages.find(says), std::string::npos) << line << ": " << outcome.messages;
    EXPECT_EQ(std::count(outcome.messages.begin(), outcome.messages.end(), '\n'), 1)
        << line << outcome.messages;
    EXPECT_LT(time.count(), line.find(" train ") != line.npos ? 10 : 3)
        << line;  // libtorch is loaded in seconds
  };
  for (const std::string verb : {"train", "flops", "claims", "audit", "report", "data inspect"})
    ends(assay + verb + " " + folder("fifo.toml"), verb == "audit" || verb == "claims" ? "" : "fifo");
  const std::string stated =
      " data.paths=[] train.steps=1 batch.sequence_length=8 optimizer.learning_rate=1e-3";
  ends(assay + "train model.name=" + folder("fifo.toml") + stated, "pipe");
  for (const std::string& data : {folder("tokens.bin"), std::string("/dev/zero"), scratch.path().string()})
    ends(read + data, "not a regular file");
  ends(command("fifo"), "is a file");
  ends(assay + "report " + folder("run") + " -o " + folder("fifo"), "cannot write");
  ends(assay + "report " + folder("run") + " -o " + folder("run"), "cannot write");
  ends(assay + "audit " + folder("run") + " --junit " + folder("fifo"), "cannot write");
  fs::remove(path("run/run.jsonl"));
  ASSERT_EQ(mkfifo(path("run/run.jsonl").c_str(), 0600), 0);
  ends(resume("run", "--change train.steps=4"), "is a pipe");
  // A pipe that somebody writes to is read.
  EXPECT_EQ(tests::shell(assay + "audit <(printf 'iter 0: loss 10.9, time 100.00ms, mfu 10.00%%\\n')").code,
            0);
}

/// Whatever names the file, what a shell sends there too is neither lost nor written over.
TEST_F(Outside, AStreamThatIsAFileIsWrittenAsAStream) {
  a_run();
  const std::string assay = tests::assay_path() + " ", in = "cd " + scratch.path().string() + "; ";
  const auto expect_between = [&](const std::string& line, const std::string& end) {
    for (const std::string to : {">", ">>"}) {
      std::ofstream(path("f")) << "OLD\n";
      const auto outcome =
          tests::shell(in + "(echo BEFORE; " + line + "; echo AFTER) " + to + " f 3" + to + " f");
      EXPECT_EQ(outcome.code, 0) << outcome.messages;
      const std::string text = text_of(path("f")), first = to == ">" ? "BEFORE\n" : "OLD\nBEFORE\n";
      EXPECT_EQ(text.substr(0, first.size()), first) << line << to;
      EXPECT_NE(text.find(end), std::string::npos) << line << to;
      EXPECT_TRUE(text.ends_with("AFTER\n")) << line << to << text.substr(text.size() - 50);
    }
  };
  fs::create_symlink("/dev/stdout", path("linked"));
  for (const std::string output : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "linked", "f", "./f"})
    expect_between(assay + "report run -o " + output, "</html>");
  expect_between(assay + "audit run --junit /dev/stdout", "</testsuite");
}

TEST_F(Outside, AReportKeepsTheFilesPermissions) {
  a_run();
  for (const std::string& more : {std::string(), " -o " + folder("run/report.html")}) {
    fs::permissions(path("run/report.html"), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(tests::shell("umask 022; " + tests::assay_path() + " report " + folder("run") + more).code, 0);
    EXPECT_EQ(static_cast<int>(fs::status(path("run/report.html")).permissions()), 0600);
  }
}

/// A safetensors file of one fp32 number.
std::string tensor_called(const std::string& name) {
  const std::string header = "{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + std::string(4, '\0');
}

void expect_text(const std::string& text) {
  EXPECT_EQ(text, spec::valid_utf8(text));
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos) << "a direction is turned";
}

TEST_F(Outside, NamesInFilesArePrintedAsText) {
  a_run();
  ASSERT_EQ(tests::assay({"checkpoint", "export", folder("run"), folder("weights")}).code, 0);
  const std::string evil = R"(\u001b]0;owned\u0007\u001b[2J\nassay: all is well\u202e)";
  std::ofstream(path("weights/model.safetensors"), std::ios::binary) << tensor_called(evil);
  for (const char* action : {"show", "verify"}) {
    const auto outcome = tests::assay({"checkpoint", action, folder("weights")});
    EXPECT_EQ(outcome.code, 65) << outcome.messages;
    EXPECT_NE(outcome.messages.find(R"(\x1b]0;owned\x07\x1b[2J\nassay: all is well\u202e)"),
              std::string::npos)
        << outcome.messages;
    expect_text(outcome.messages);
    EXPECT_EQ(std::count(outcome.messages.begin(), outcome.messages.end(), '\n'), 1) << outcome.messages;
  }
  scratch.write("log.jsonl",
                "{\"event\":\"step\",\"step\":1,\"loss\":2.5,\"seconds\":1,\"model\":\"" + evil + "\"}\n");
  scratch.write("recipe.toml", "\"\\u001b[31mkey\" = 1\n");
  for (const auto& words : {std::vector<std::string>{"audit", folder("log.jsonl")},
                            {"train", folder("recipe.toml")},
                            {"flops", folder("a\x1b[31m")},
                            {"\x1b[31m"}}) {
    const auto outcome = tests::assay(words);
    expect_text(outcome.output + outcome.messages);
  }
}

TEST_F(Outside, NoNameLeadsOutOfItsFolder) {
  a_run();
  ASSERT_EQ(tests::assay({"checkpoint", "export", folder("run"), folder("weights")}).code, 0);
  fs::remove(path("weights/model.safetensors"));
  for (const std::string name :
       {"../../etc/passwd", "/etc/passwd", "..", "a/../b", "", ".hidden", "a\\u0000b"}) {
    std::ofstream(path("weights/model.safetensors.index.json"))
        << "{\"metadata\": {}, \"weight_map\": {\"model.embed_tokens.weight\": \"" << name << "\"}}";
    const auto outcome = tests::assay({"checkpoint", "verify", folder("weights")});
    expect_one_line(outcome, 65, "no file of the folder");
  }
  // A model's folder given as "..": the run stays below runs/.
  const auto dumped =
      tests::shell("mkdir -p " + folder("model/inner") + " && cd " + folder("model/inner") + " && cp " +
                   folder("weights") + "/config.json .. && " + tests::assay_path() +
                   " train model.name=.. data.paths=[] train.steps=1 batch.sequence_length=8 "
                   "optimizer.learning_rate=1e-3 --dump-config");
  EXPECT_NE(dumped.output.find("directory = \"runs/model\""), std::string::npos)
      << dumped.output << dumped.messages;
}

}  // namespace
}  // namespace assay::outside_test
