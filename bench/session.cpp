#include "bench/session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace strata::bench {
namespace {

constexpr int could_not_start = 127;

/// The environment with OMP_NUM_THREADS set.
std::vector<std::string> environment_with(int threads) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "OMP_NUM_THREADS=", 16) != 0) environment.emplace_back(*entry);
  environment.push_back("OMP_NUM_THREADS=" + std::to_string(threads));
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Session::Session(const Command& command) {
  terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal_ < 0 || ::grantpt(terminal_) != 0 || ::unlockpt(terminal_) != 0)
    throw std::runtime_error(std::string("cannot open a pseudo-terminal: ") + std::strerror(errno));
  const std::string terminal_name = ::ptsname(terminal_);
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.threads);
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);

  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error(std::string("cannot fork: ") + std::strerror(errno));
  if (process_ == 0) {  // only async-signal-safe calls until exec
    ::setsid();
    const int slave = ::open(terminal_name.c_str(), O_RDWR);
    if (slave < 0 || ::chdir(command.directory.c_str()) != 0) ::_exit(could_not_start);
    for (int descriptor = 0; descriptor <= 2; ++descriptor) ::dup2(slave, descriptor);
    if (slave > 2) ::close(slave);
    ::execve(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
    ::_exit(could_not_start);
  }
  ::fcntl(terminal_, F_SETFL, O_NONBLOCK);
}

Session::~Session() {
  if (running_) {
    ::kill(-process_, SIGKILL);
    ::kill(process_, SIGKILL);  // it may not have reached setsid yet
    ::waitpid(process_, nullptr, 0);
  } else {
    ::kill(-process_, SIGKILL);  // whatever a script has left behind
  }
  ::close(terminal_);
}

const std::string& Session::output() {
  char buffer[4096];
  ssize_t size = 0;
  while ((size = ::read(terminal_, buffer, sizeof buffer)) > 0)
    for (ssize_t i = 0; i < size; ++i)
      if (buffer[i] != '\r') output_ += buffer[i];
  return output_;
}

bool Session::running() {
  if (!running_) return false;
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) == process_) running_ = false;
  return running_;
}

}  // namespace strata::bench
