// What the tests of stage 01's runs share: strata01 as a process, and a data set of bytes for it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/io/files.h"
#include "common/io/safetensors.h"
#include "tests/catch.h"
#include "tests/temporary_directory.h"

#ifdef __SANITIZE_ADDRESS__
#define STRATA_UNDER_ASAN true
#else
#define STRATA_UNDER_ASAN false
#endif

namespace strata::tests {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

/// `a` with `b` behind it; a flag that comes twice counts as it comes last.
inline Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// How a process ended, and what it said.
struct Outcome {
  int code = -1;      ///< exit status; -1 if it did not exit
  int signal = 0;     ///< what ended it, if it did not exit
  bool hung = false;  ///< it ran past its limit and was killed
  std::string out, err;
  double seconds = 0;
};

/// A program that runs beside the test; killed if the scope ends before it does.
class Child {
 public:
  /// `address_space` in bytes limits its memory; 0: no limit.
  explicit Child(const Arguments& command, rlim_t address_space = 0) {
    std::vector<char*> arguments;
    for (const std::string& argument : command)
      arguments.push_back(const_cast<char*>(argument.data()));
    arguments.push_back(nullptr);
    const int out = create(directory_ / "out"), err = create(directory_ / "err");
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      ::dup2(out, STDOUT_FILENO);
      ::dup2(err, STDERR_FILENO);
      const rlimit limit{address_space, address_space};
      if (address_space > 0) ::setrlimit(RLIMIT_AS, &limit);
      ::setenv("OMP_WAIT_POLICY", "passive", 1);  // other tests want the processors too
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(out);
    ::close(err);
  }
  ~Child() {
    if (ended()) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, &status_, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) { ::kill(process_, signal); }
  bool ended() {
    if (!ended_) ended_ = ::waitpid(process_, &status_, WNOHANG) == process_;
    return ended_;
  }
  /// Waits for its end, at most `limit` seconds.
  Outcome wait(double limit = 120) {
    Outcome outcome;
    while (!ended()) {
      if (age() > limit && !outcome.hung) send(SIGKILL), outcome.hung = true;
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    outcome.seconds = age();
    if (WIFEXITED(status_)) outcome.code = WEXITSTATUS(status_);
    if (WIFSIGNALED(status_)) outcome.signal = WTERMSIG(status_);
    outcome.out = io::read_file(directory_ / "out");
    outcome.err = io::read_file(directory_ / "err");
    return outcome;
  }

 private:
  static int create(const fs::path& path) {
    const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    return file;
  }
  [[nodiscard]] double age() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  TemporaryDirectory directory_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  pid_t process_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

inline Arguments strata01_command(const Arguments& flags) {
  return Arguments{STRATA_BIN "/strata01"} + flags;
}

inline Outcome strata01(const Arguments& flags) { return Child(strata01_command(flags)).wait(); }

/// A run that has to succeed.
inline Outcome trained(const Arguments& flags) {
  const Outcome outcome = strata01(flags);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

// ---------------------------------------------------------------------------------------------------
// Files

/// A shard's bytes, made here so that no writer of ours is trusted.
inline std::string shard(const std::vector<std::uint16_t>& tokens) {
  std::string bytes(1024 + 2 * tokens.size(), '\0');
  const std::uint32_t header[] = {20240520, 1, static_cast<std::uint32_t>(tokens.size())};
  std::memcpy(bytes.data(), header, sizeof header);
  if (!tokens.empty()) std::memcpy(bytes.data() + 1024, tokens.data(), 2 * tokens.size());
  return bytes;
}

/// tokenizer.bin of the 256 bytes, with the end of the text as token 256.
inline std::string byte_tokenizer() {
  std::string bytes(1024, '\0');
  const std::uint32_t header[] = {20240328, 2, 257, 256};
  std::memcpy(bytes.data(), header, sizeof header);
  for (int byte = 0; byte < 256; ++byte) bytes += {'\x01', static_cast<char>(byte)};
  return bytes + "\x0d<|endoftext|>";
}

/// Words of a small language: something to learn, and no two windows alike.
inline std::vector<std::uint16_t> byte_tokens(std::size_t count, unsigned seed) {
  static const char* const words[] = {"the ", "cat ", "sat ", "on ", "a ", "mat. ", "dog ", "ran "};
  std::mt19937 random(seed);
  std::vector<std::uint16_t> tokens;
  while (tokens.size() < count) {
    if (random() % 12 == 0) tokens.push_back(256);
    for (const char* c = words[random() % 8]; *c != '\0'; ++c)
      tokens.push_back(static_cast<unsigned char>(*c));
  }
  tokens.resize(count);
  return tokens;
}

/// A data set with the vocabulary 257: training shards of these numbers of tokens, one for validation.
inline void write_data_set(const fs::path& directory,
                           const std::vector<std::size_t>& train = {1205, 701}, unsigned seed = 1) {
  fs::create_directories(directory);
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < train.size(); ++i) {
    const std::string name = "train_00000" + std::to_string(i) + ".bin";
    io::write_file(directory / name, shard(byte_tokens(train[i], seed + static_cast<unsigned>(i))));
    tokens += train[i];
  }
  io::write_file(directory / "val_000000.bin", shard(byte_tokens(331, seed + 1000)));
  io::write_file(directory / "tokenizer.bin", byte_tokenizer());
  io::write_file(directory / "dataset.json",
                 R"({"format": 1, "name": "bytes", "vocab_size": 257, "end_of_text": 256,)"
                 R"( "train": {"tokens": )" +
                     std::to_string(tokens) + R"(}, "val": {"tokens": 331}})" + "\n");
}

/// A folder for one test, with a data set in it.
struct Workshop : TemporaryDirectory {
  std::string data = (*this / "data").string();
  explicit Workshop(const std::vector<std::size_t>& train = {1205, 701}) {
    write_data_set(data, train);
  }
  [[nodiscard]] std::string operator()(const std::string& name) const {
    return (*this / name).string();
  }
  /// The flags of a run that takes a millisecond a step and writes nothing that is not asked for.
  [[nodiscard]] Arguments tiny(const Arguments& more = {}) const {
    return Arguments{"--data",
                     data,
                     "--init",
                     "L2,C32,H2,T16,V257",
                     "--batch",
                     "4",
                     "--steps",
                     "12",
                     "--lr",
                     "3e-3",
                     "--warmup",
                     "3",
                     "--val-every",
                     "0",
                     "--sample-every",
                     "0",
                     "--checkpoint-every",
                     "0",
                     "--keep",
                     "0",
                     "--final-lr",
                     "0.1",
                     "--threads",
                     "1"} +
           more;
  }
};

/// Every file of a directory by name, the settings in its state.json left out: what has to be equal
/// for two checkpoints to be the same.
inline std::map<std::string, std::string> checkpoint_bits(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const fs::path& path : fs::directory_iterator(directory))
    files[path.filename().string()] = io::read_file(path);
  std::string& state = files["state.json"];
  const std::size_t begin = state.find("\"settings\":{"), end = state.find('}', begin);
  REQUIRE(end != std::string::npos);
  state.erase(begin, end + 1 - begin);
  return files;
}

/// The names of the files in which two checkpoints differ, in one text; empty if they are the same.
inline std::string checkpoint_differences(const fs::path& a, const fs::path& b) {
  auto one = checkpoint_bits(a), other = checkpoint_bits(b);
  std::string names;
  for (const auto& [name, bytes] : one)
    if (other[name] != bytes) names += name + " ";
  if (names.empty() && one.size() != other.size()) names = "the number of files";
  return names;
}

inline std::string step_name(long step) {
  std::string digits = std::to_string(step);
  return "step_" + std::string(8 - digits.size(), '0') + digits;
}

/// The names of the checkpoints of a run, in order.
inline std::vector<std::string> checkpoints(const fs::path& out) {
  std::vector<std::string> names;
  for (const fs::path& path : fs::directory_iterator(out))
    if (path.filename().string().starts_with("step_") && path.extension() != ".tmp")
      names.push_back(path.filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The names of the tensors of two files that are not equal to the bit.
inline std::string tensor_differences(const fs::path& a, const fs::path& b) {
  const io::Safetensors one(a), other(b);
  std::string names;
  if (one.tensors().size() != other.tensors().size()) names = "the number of tensors ";
  for (const io::Tensor& tensor : one.tensors()) {
    const io::Tensor* match = other.find(tensor.name);
    if (match == nullptr || match->shape != tensor.shape ||
        !std::ranges::equal(tensor.bytes, match->bytes))
      names += tensor.name + " ";
  }
  return names;
}

}  // namespace strata::tests
