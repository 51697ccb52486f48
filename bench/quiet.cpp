#include "bench/quiet.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace strata::bench {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t machine_ticks() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0,
               steal = 0;
  stat >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  if (cpu != "cpu")
    throw std::runtime_error("cannot read /proc/stat, which tells how busy the machine is");
  return user + nice + system + irq + softirq + steal;
}

std::int64_t own_ticks() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  const double ticks = (seconds(usage.ru_utime) + seconds(usage.ru_stime)) *
                       static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::int64_t>(ticks);
}

/// Ticks of one process if it belongs to `session`, else 0.
std::int64_t ticks_in_session(const std::string& process, pid_t session) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string line;
  if (!std::getline(file, line)) return 0;  // it has just ended
  // The second field, the name, may hold spaces and parentheses; what follows the last one counts.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, skipped;
  pid_t parent = 0, group = 0, belongs_to = 0;
  fields >> state >> parent >> group >> belongs_to;
  if (belongs_to != session) return 0;
  for (int field = 7; field <= 13; ++field) fields >> skipped;
  std::int64_t user = 0, system = 0, waited_user = 0, waited_system = 0;
  fields >> user >> system >> waited_user >> waited_system;
  return user + system + waited_user + waited_system;
}

std::int64_t session_ticks(pid_t session) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  std::int64_t ticks = 0;
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr)
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0)
      ticks += ticks_in_session(entry->d_name, session);
  return ticks;
}

}  // namespace

Usage usage_now(pid_t session) {
  return {seconds_now(), machine_ticks(), own_ticks() + (session > 0 ? session_ticks(session) : 0)};
}

double foreign_share(std::int64_t busy, std::int64_t ours, double seconds, int processors,
                     long ticks_per_second) {
  const double all = seconds * processors * static_cast<double>(ticks_per_second);
  return all > 0 ? std::clamp(static_cast<double>(busy - ours) / all, 0.0, 1.0) : 0.0;
}

double foreign_share(const Usage& from, const Usage& to) {
  return foreign_share(to.busy - from.busy, to.ours - from.ours, to.seconds - from.seconds,
                       static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), ::sysconf(_SC_CLK_TCK));
}

double wait_until_quiet(double share, double longest_wait) {
  const double start = seconds_now();
  while (seconds_now() - start < longest_wait) {
    const Usage before = usage_now(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (foreign_share(before, usage_now(0)) < share) break;
  }
  return seconds_now() - start;
}

}  // namespace strata::bench
