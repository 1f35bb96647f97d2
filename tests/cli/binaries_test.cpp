// labels: cli fault
// What the build and `cmake --install` make: no library is loaded from where a user happens to stand, and
// what an overflow or a write through a pointer could do is made hard.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/built_program.hpp"
#include "tests/support/scratch.hpp"

namespace assay::binaries_test {
namespace {

namespace fs = std::filesystem;

/// What an ELF file says of itself (ELF-64 Object File Format; System V ABI, "Dynamic Linking").
struct Elf {
  bool shared_or_pie = false, program = false, marked_pie = false;
  bool relro = false, now = false, stack_known = false, stack_executable = false;
  std::vector<std::string> needed, run_path;
  std::set<std::string> wanted;  ///< symbols of others
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text) c == ':' ? void(out.emplace_back()) : void(out.back() += c);
  return out;
}

template <class T>
T at(const std::string& bytes, std::uint64_t offset) {
  T value{};
  if (offset + sizeof value > bytes.size()) throw std::runtime_error("the file ends within its tables");
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Elf read_elf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto head = at<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
    throw std::runtime_error(path.string() + " is no ELF file of 64 bits");
  Elf out;
  out.shared_or_pie = head.e_type == ET_DYN;
  for (int i = 0; i < head.e_phnum; ++i) {
    const auto segment =
        at<Elf64_Phdr>(bytes, head.e_phoff + static_cast<std::uint64_t>(i) * head.e_phentsize);
    out.program |= segment.p_type == PT_INTERP;
    out.relro |= segment.p_type == PT_GNU_RELRO;
    if (segment.p_type != PT_GNU_STACK) continue;
    out.stack_known = true;
    out.stack_executable = (segment.p_flags & PF_X) != 0;
  }
  for (int i = 0; i < head.e_shnum; ++i) {
    const auto section =
        at<Elf64_Shdr>(bytes, head.e_shoff + static_cast<std::uint64_t>(i) * head.e_shentsize);
    if (section.sh_type != SHT_DYNAMIC && section.sh_type != SHT_DYNSYM) continue;
    const auto texts =
        at<Elf64_Shdr>(bytes, head.e_shoff + std::uint64_t{section.sh_link} * head.e_shentsize);
    const auto text = [&](std::uint64_t offset) { return std::string(&bytes.at(texts.sh_offset + offset)); };
    for (std::uint64_t entry = 0; entry < section.sh_size; entry += section.sh_entsize) {
      if (section.sh_type == SHT_DYNSYM) {
        const auto symbol = at<Elf64_Sym>(bytes, section.sh_offset + entry);
        if (symbol.st_shndx == SHN_UNDEF) out.wanted.insert(text(symbol.st_name));
        continue;
      }
      const auto fact = at<Elf64_Dyn>(bytes, section.sh_offset + entry);
      if (fact.d_tag == DT_NEEDED) out.needed.push_back(text(fact.d_un.d_val));
      if (fact.d_tag == DT_RUNPATH || fact.d_tag == DT_RPATH)
        for (const std::string& folder : split(text(fact.d_un.d_val))) out.run_path.push_back(folder);
      out.now |= (fact.d_tag == DT_FLAGS && (fact.d_un.d_val & DF_BIND_NOW)) ||
                 (fact.d_tag == DT_FLAGS_1 && (fact.d_un.d_val & DF_1_NOW));
      out.marked_pie |= fact.d_tag == DT_FLAGS_1 && (fact.d_un.d_val & DF_1_PIE);
    }
  }
  return out;
}

std::string cached(const std::string& name) {
  std::ifstream cache(tests::binary_dir() + "/CMakeCache.txt");
  for (std::string line; std::getline(cache, line);)
    if (line.rfind(name + ":", 0) == 0) return line.substr(line.find('=') + 1);
  return "";
}
bool sanitized() { return cached("ASSAY_SANITIZE") == "ON"; }

void expect_anchored(const Elf& elf, const fs::path& path) {
  for (const std::string& folder : elf.run_path)
    EXPECT_TRUE(folder.starts_with("/") || folder == "$ORIGIN" || folder.starts_with("$ORIGIN/"))
        << path << " loads libraries from \"" << folder << "\", which depends on where it is started";
}

void expect_hard(const Elf& elf, const fs::path& path) {
  expect_anchored(elf, path);
  EXPECT_TRUE(elf.shared_or_pie) << path << " is not position-independent";
  EXPECT_TRUE(!elf.program || elf.marked_pie) << path;
  EXPECT_TRUE(elf.relro && elf.now) << path << ": tables of addresses stay writable";
  EXPECT_TRUE(elf.stack_known && !elf.stack_executable) << path << " has a stack that may be executed";
}

/// Of what is compiled as users get it.
void expect_checked(const Elf& elf, const fs::path& path) {
  expect_hard(elf, path);
  if (sanitized()) return;  // AddressSanitizer checks in its own way
  EXPECT_TRUE(elf.wanted.contains("__stack_chk_fail")) << path << ": no stack protector";
  if (cached("CMAKE_BUILD_TYPE") == "Debug") return;  // glibc checks lengths where the compiler optimises
  EXPECT_TRUE(std::ranges::any_of(elf.wanted, [](const std::string& name) { return name.ends_with("_chk"); }))
      << path << ": no length is checked (_FORTIFY_SOURCE)";
}

/// Programs and libraries below a folder.
std::vector<fs::path> binaries(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    char magic[SELFMAG] = {};
    file.read(magic, SELFMAG);
    if (std::memcmp(magic, ELFMAG, SELFMAG) == 0) out.push_back(entry.path());
  }
  return out;
}

TEST(BinariesCli, TheBuildsAreHard) {
  const fs::path build = tests::binary_dir();
  std::vector<fs::path> ours = {build / "bin/assay"};
  for (const char* file : {"bin/assay-train", "lib/libassay_impl.so"})
    if (fs::exists(build / file)) ours.push_back(build / file);
  for (const fs::path& path : ours) expect_checked(read_elf(path), path);
  std::size_t programs = 0;
  for (const fs::path& path : binaries(build / "bin")) expect_hard(read_elf(path), path), ++programs;
  EXPECT_GE(programs, 2u) << "this test's own program is one";
}

TEST(BinariesCli, TheInstalledOnesAreHard) {
  const tests::Scratch scratch;
  const auto installed = tests::shell(
      cached("CMAKE_COMMAND") + " --install " + tests::binary_dir() + " --prefix " + scratch.path().string(),
      120);
  ASSERT_EQ(installed.code, 0) << installed.messages;
  const auto found = binaries(scratch.path());
  EXPECT_EQ(found.size(), fs::exists(tests::binary_dir() + "/bin/assay-train") ? 3u : 1u);
  for (const fs::path& path : found) expect_checked(read_elf(path), path);
}

// A library of the name that the loader looks for, in the folder that a user stands in. One that is loaded
// ends the program: "invalid ELF header".
TEST(BinariesCli, NothingIsLoadedFromTheCurrentFolder) {
  const tests::Scratch scratch;
  const std::string build = tests::binary_dir();
  const bool trainer = fs::exists(build + "/bin/assay-train");
  std::set<std::string> planted = {"libgcc_s.so.1", "libstdc++.so.6"};
  for (const char* file : {"/bin/assay", "/bin/assay-train", "/lib/libassay_impl.so"})
    if (fs::exists(build + file))
      for (const std::string& name : read_elf(build + file).needed) planted.insert(fs::path(name).filename());
  for (const std::string& name : planted) scratch.write(name, "no library\n");
  const std::string here = "cd " + scratch.path().string() + " && unset LD_LIBRARY_PATH && ";
  EXPECT_EQ(tests::shell(here + build + "/bin/assay version").code, 0);
  // The plant is of the kind that would be found.
  const auto asked = tests::shell(here + "LD_LIBRARY_PATH=. " + build + "/bin/assay version");
  EXPECT_TRUE(sanitized() || asked.code != 0) << asked.output;
  if (!trainer) return;
  const auto probed = tests::shell(here + build + "/bin/assay-train --help");
  EXPECT_EQ(probed.code, 0) << probed.messages;
}

}  // namespace
}  // namespace assay::binaries_test
