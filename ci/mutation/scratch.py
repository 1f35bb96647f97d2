"""A copy of the working tree in which mutants are built and tested. The tree itself is only read."""
import json
import os
import shlex
import shutil
import subprocess

PRESET = {"spec": "reference", "reference": "reference", "impl": "release", "step": "release"}


class BuildFailed(Exception):
    """The compiler's own words."""


def tracked(root):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, check=True, text=True).stdout
    return sorted({name for name in listed.split("\0") if name and (root / name).is_file()})


def write_if_other(path, content):
    """Keeps the time of a file that is right already, so that nothing is built anew for it."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class Scratch:
    def __init__(self, root, number):
        self.root, self.folder = root, root / "build" / "mutate" / str(number)
        self.tools = root / ".toolchain" / "bin"
        self.ready = set()

    def copy_tree(self):
        names = tracked(self.root)
        for name in names:
            write_if_other(self.folder / name, (self.root / name).read_bytes())
            shutil.copymode(self.root / name, self.folder / name)
        kept = set(names)
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder)
            if name.parts[0] not in ("build", "build.lock", ".toolchain") and path.is_file() and str(name) not in kept:
                path.unlink()
        link = self.folder / ".toolchain"
        if not link.is_symlink():
            link.symlink_to((self.root / ".toolchain").resolve())

    def call(self, tool, *arguments):
        return subprocess.run([self.tools / tool, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")

    def checked(self, *arguments):
        done = self.call("cmake", *arguments)
        if done.returncode:
            raise BuildFailed(done.stdout)

    def configure(self, preset):
        """Without batches: a mutant costs its own source, and the compiler's call of each source is known."""
        if not (self.folder / "build" / preset / "build.ninja").exists():
            self.checked("--preset", preset, "-DASSAY_BATCH=0", "-DASSAY_CUDA=OFF")  # no mutant is in a kernel

    def build(self, preset, targets):
        self.checked("--build", f"build/{preset}", "-j", str(os.cpu_count() or 2), "--target", *targets)

    def prepare(self, preset, targets):
        """Configures and builds once, before the first mutant of a preset."""
        if (preset, *targets) not in self.ready:
            self.configure(preset)
            self.build(preset, targets)
            self.ready.add((preset, *targets))

    def ctest(self, preset, selection, seconds):
        """Runs CTest entries up to the first failure: (did all pass, output)."""
        done = self.call("ctest", "--test-dir", f"build/{preset}", *selection, "--timeout", str(seconds),
                         "--stop-on-failure", "--output-on-failure", "--no-tests=error")
        return done.returncode == 0, done.stdout

    def syntax_command(self, preset, file):
        """The compiler call of a source, without ccache and without output. A header of the step is compiled as
        the source that instantiates it."""
        file = "impl/model/model.cpp" if file.endswith(".hpp") else file
        entries = json.loads((self.folder / "build" / preset / "compile_commands.json").read_text())
        entry = next(e for e in entries if e["file"] == str(self.folder / file))
        words = shlex.split(entry["command"])
        launcher = [i for i, word in enumerate(words) if os.path.basename(word) == "ccache"]
        words = words[launcher[0] + 1:] if launcher else words
        at = words.index("-o")
        return words[:at] + words[at + 2:] + ["-fsyntax-only"], entry["directory"]
