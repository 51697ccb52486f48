// A program that is measured, in a session and on a terminal of its own.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace strata::bench {

struct Command {
  std::vector<std::string> arguments;  ///< the program first
  std::filesystem::path directory;     ///< where it runs
  int threads = 1;                     ///< OMP_NUM_THREADS
};

/// A running program. Its output goes through a pseudo-terminal, so that programs which buffer
/// their output into a pipe show each line as they print it. The destructor kills the whole session.
class Session {
 public:
  /// Throws std::runtime_error with a sentence if the program cannot be started.
  explicit Session(const Command& command);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] pid_t id() const { return process_; }
  /// Collects what has been printed and returns everything so far.
  const std::string& output();
  /// Whether it still runs.
  [[nodiscard]] bool running();

 private:
  pid_t process_ = -1;
  int terminal_ = -1;
  bool running_ = true;
  std::string output_;
};

}  // namespace strata::bench
