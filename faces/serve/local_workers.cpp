#include "faces/serve/local_workers.h"

#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace atunner::serve {
namespace {

constexpr std::chrono::milliseconds kLook{200};
constexpr int kEndSeconds = 30;

std::string NameOf(int number) { return fmt::format("{}{}", kLocalWorkerPrefix, number); }

/// `strings` for exec, which does not change them.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& one : strings) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

LocalWorkers::LocalWorkers(LocalWorkersOptions options, queue::Queue& queue, Log& log)
    : options_(std::move(options)),
      queue_(queue),
      log_(log),
      children_(static_cast<size_t>(options_.count), -1),
      thread_([this] { Loop(); }) {}

LocalWorkers::~LocalWorkers() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

pid_t LocalWorkers::Start(int number) const {
  std::vector<std::string> arguments = {SelfExecutable().string(),
                                        "worker",
                                        "--server",
                                        options_.server,
                                        "--shared-store",
                                        "--store",
                                        options_.store.string(),
                                        "--name",
                                        NameOf(number),
                                        "--folder",
                                        (options_.folder / std::to_string(number)).string()};
  std::vector<std::string> environment = {"ATUNNER_TOKEN=" + options_.secret};
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("ATUNNER_TOKEN=")) environment.emplace_back(*each);
  }
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(environment);
  const pid_t server = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  // Between fork and exec only calls that are safe in a signal handler.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != server) ::_exit(1);
  // The server's sockets must not outlive it in a worker: a new server could not listen.
  ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  ::setpgid(0, 0);  // Ctrl-C goes to the server, which then ends its workers
  ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

void LocalWorkers::Reclaim(int number, bool blame) {
  const auto reclaimed = queue_.Reclaim(NameOf(number), blame);
  if (!reclaimed)
    log_.Write("error", "jobs of an ended worker stay with it until their leases end",
               {{"what", reclaimed.error().ToString()}});
}

void LocalWorkers::StartMissing() {
  for (size_t i = 0; i < children_.size(); ++i) {
    if (children_[i] > 0) continue;
    children_[i] = Start(static_cast<int>(i) + 1);
    if (children_[i] < 0) log_.Write("error", "a worker cannot be started", {});
  }
}

void LocalWorkers::ReapEnded() {
  for (size_t i = 0; i < children_.size(); ++i) {
    pid_t& child = children_[i];
    int status = 0;
    if (child <= 0 || ::waitpid(child, &status, WNOHANG) != child) continue;
    log_.Write("warning", "a worker ended",
               {{"pid", child},
                {"signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0},
                {"exit_code", WIFEXITED(status) ? WEXITSTATUS(status) : 0}});
    child = -1;
    Reclaim(static_cast<int>(i) + 1, true);
  }
}

void LocalWorkers::Loop() {
  // Those of a server that was killed ended with it, which no job is to blame for.
  for (size_t i = 0; i < children_.size(); ++i) Reclaim(static_cast<int>(i) + 1, false);
  std::unique_lock lock(mutex_);
  double pause = 0;  // grows while workers die at once
  auto started = std::chrono::steady_clock::now();
  while (!ending_) {
    ReapEnded();
    const bool missing = std::ranges::find(children_, -1) != children_.end();
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - started;
    if (missing && since.count() >= pause) {
      pause = since.count() < 30 ? std::min(2 * pause + 0.5, 30.0) : 0.5;
      StartMissing();
      started = std::chrono::steady_clock::now();
    }
    changed_.wait_for(lock, kLook, [this] { return ending_; });
  }
  for (const pid_t child : children_) {
    if (child > 0) ::kill(child, SIGTERM);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kEndSeconds);
  while (std::ranges::any_of(children_, [](pid_t child) { return child > 0; })) {
    ReapEnded();
    if (std::chrono::steady_clock::now() > end) {
      for (const pid_t child : children_) {
        if (child > 0) ::kill(child, SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace atunner::serve
