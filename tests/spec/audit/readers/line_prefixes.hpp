#pragma once
// What containers, remote shells, schedulers and loggers put before every line of a log.
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace assay::tests {

inline std::string two_digits(std::size_t i) {
  return {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
}

struct Prefix {
  std::string name;
  std::function<std::string(std::size_t line)> text;  ///< of the line of that number; the first is 0
};

inline const std::vector<Prefix>& prefixes() {
  static const std::vector<Prefix> all = {
      {"pdsh", [](std::size_t i) { return "node" + two_digits(i % 4) + ": "; }},
      {"address", [](std::size_t i) { return "10.0.0." + std::to_string(i % 4) + ": "; }},
      {"docker compose", [](std::size_t i) { return "worker-" + std::to_string(i % 2) + "  | "; }},
      {"kubectl --prefix", [](std::size_t) { return "[pod/trainer-0/main] "; }},
      {"kubectl --timestamps",
       [](std::size_t i) { return "2025-05-01T10:00:" + two_digits(i % 60) + ".123456789Z "; }},
      {"what runs containers",
       [](std::size_t i) { return "2025-05-01T10:00:" + two_digits(i % 60) + ".123456789+00:00 stdout F "; }},
      {"journal",
       [](std::size_t i) { return "May  1 10:00:" + two_digits(i % 60) + " node3 python[812]: "; }},
      {"ray", [](std::size_t) { return "(RayTrainWorker pid=1234, ip=10.0.0.1) "; }},
      {"torch's ranks", [](std::size_t) { return "[rank0]: "; }},
      {"torchrun's roles", [](std::size_t) { return "[trainer0]:"; }},
      {"pdsh and torchrun", [](std::size_t) { return "node03: [default0]:"; }},
      {"pdsh and ranks", [](std::size_t) { return "node03: [rank0]: "; }},
      {"grep -n", [](std::size_t i) { return std::to_string(i + 1) + ":"; }},
      {"grep -n of lines further down", [](std::size_t i) { return std::to_string(3 * i + 98) + ":"; }},
      {"grep -H", [](std::size_t) { return "logs/run-7.log:"; }},
      {"grep -Hn", [](std::size_t i) { return "train.log:" + std::to_string(i + 1) + ":"; }},
      {"cat -n", [](std::size_t i) { return "  " + std::to_string(i + 1) + "\t"; }},
      {"a tab", [](std::size_t) { return "\t"; }},
      {"quoted mail", [](std::size_t) { return "> "; }},
      {"logging",
       [](std::size_t i) {
         return i % 3 == 1 ? "WARNING:train.loop:" : i % 3 == 2 ? "INFO:root:" : "INFO:train:";
       }},
      {"hydra",
       [](std::size_t i) { return "[2024-05-01T12:00:" + two_digits(i % 60) + "][__main__][INFO] - "; }},
      {"loguru",
       [](std::size_t i) {
         return "2024-05-01T12:00:" + two_digits(i % 60) +
                ".123 | INFO     | __main__:main:" + std::to_string(i % 4 + 98) + " - ";
       }},
      {"accelerate",
       [](std::size_t i) { return "05/01/2024 12:00:" + two_digits(i % 60) + " - INFO - __main__ - "; }},
      {"glog",
       [](std::size_t i) {
         return "I0501 12:00:" + two_digits(i % 60) + ".123456 1234 train.py:" + std::to_string(i % 5 + 7) +
                "] ";
       }},
      {"SageMaker's mpirun", [](std::size_t) { return "[1,mpirank:0,algo-1]<stdout>:"; }},
      {"CloudWatch", [](std::size_t i) { return "2024-05-01T12:00:" + two_digits(i % 60) + ".000Z\t"; }},
      {"aws logs tail",
       [](std::size_t i) {
         return "2024-05-01T12:00:" + two_digits(i % 60) + ".123000+00:00 job-7/algo-1-1714560000 ";
       }},
      {"CloudWatch's export",
       [](std::size_t i) { return "1714560" + std::to_string(100 + i % 800) + "000,\""; }},
      {"gh run view --log",
       [](std::size_t i) { return "train\tRun it\t2024-05-01T10:00:" + two_digits(i % 60) + ".1234567Z "; }},
      {"stern", [](std::size_t i) { return "trainer-" + std::to_string(i % 2) + " main "; }},
      {"srun -l", [](std::size_t) { return "0: "; }},
      {"srun -l of many", [](std::size_t) { return " 0: "; }}};
  return all;
}

inline std::string behind(const Prefix& prefix, const std::string& log) {
  std::istringstream in(log);
  std::string out, line;
  for (std::size_t i = 0; std::getline(in, line); ++i) out += prefix.text(i) + line + "\n";
  return out;
}

}  // namespace assay::tests
