#include "atunner/base/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "atunner/base/clock.h"

extern char** environ;

namespace atunner {
namespace {

constexpr int kChannelFd = 3;
constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 32;

/// How a message's way over a channel ended.
enum class Passage { kComplete, kClosed, kDeadline };

constexpr double kStopPollMs = 50;

/// How long one waits for the other end at most: to `deadline` (SystemClock seconds; negative = for
/// ever) or until `stop`.
struct Patience {
  double deadline = -1;
  std::stop_token stop;
};

/// Passes exactly `size` bytes: `pass(at, size)` is a send or recv that does not block, and what it
/// waits for `events`.
template <class Byte, class Pass>
Passage PassAll(int fd, short events, Byte* at, size_t size, const Patience& patience,
                const Pass& pass) {
  while (size > 0) {
    int wait_ms = -1;
    if (patience.deadline >= 0) {
      const double left = patience.deadline - SystemClock().Now();
      if (left <= 0 || patience.stop.stop_requested()) return Passage::kDeadline;
      wait_ms = static_cast<int>(
          std::min(left * 1000.0 + 1.0, patience.stop.stop_possible() ? kStopPollMs : 1e9));
    }
    pollfd waiting{fd, events, 0};
    const int ready = ::poll(&waiting, 1, wait_ms);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = pass(at, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return Passage::kClosed;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return Passage::kComplete;
}

/// MSG_NOSIGNAL because a dead peer is an answer, not a signal.
Passage SendAll(int fd, std::string_view bytes, const Patience& patience) {
  return PassAll(fd, POLLOUT, bytes.data(), bytes.size(), patience,
                 [fd](const char* at, size_t size) {
                   return ::send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
                 });
}

Passage ReceiveAll(int fd, char* to, size_t size, const Patience& patience) {
  return PassAll(fd, POLLIN, to, size, patience,
                 [fd](char* at, size_t most) { return ::recv(fd, at, most, MSG_DONTWAIT); });
}

Passage SendMessage(int fd, std::string_view message, const Patience& patience) {
  const uint64_t size = message.size();
  const Passage head = SendAll(fd, {reinterpret_cast<const char*>(&size), sizeof size}, patience);
  return head == Passage::kComplete ? SendAll(fd, message, patience) : head;
}

Passage ReceiveMessage(int fd, std::string& message, const Patience& patience) {
  uint64_t size = 0;
  const Passage head = ReceiveAll(fd, reinterpret_cast<char*>(&size), sizeof size, patience);
  if (head != Passage::kComplete) return head;
  if (size > kMaxMessageBytes) return Passage::kClosed;
  message.resize(size);
  return ReceiveAll(fd, message.data(), size, patience);
}

/// What runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void Exec(const WorkerOptions& options, const char* executable, char** argv,
                       char** envp, int socket, int stderr_file) {
  const int null = ::open("/dev/null", O_RDWR);
  if (null >= 0) {
    ::dup2(null, 0);
    ::dup2(null, 1);
  }
  ::dup2(stderr_file, 2);
  if (socket == kChannelFd) {
    ::fcntl(socket, F_SETFD, 0);
  } else {
    ::dup2(socket, kChannelFd);
  }
  ::close_range(kChannelFd + 1, ~0u, 0);
  if (options.niceness > 0)
    ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + options.niceness);
  if (const rlim_t memory = options.address_space_bytes; memory > 0) {
    const rlimit limit{memory, memory};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // Ctrl-C reaches the whole foreground group; the parent decides what happens to its workers.
  ::setpgid(0, 0);
  ::execve(executable, argv, envp);
  ::_exit(127);
}

}  // namespace

std::string WorkerDeath::ToString() const {
  if (timed_out) return "did not answer in time and was killed";
  if (signal != 0)
    return std::string("died of signal ") + std::to_string(signal) + " (" + ::strsignal(signal) +
           ")";
  return "exited with code " + std::to_string(exit_code);
}

Result<WorkerProcess> WorkerProcess::Start(const WorkerOptions& options) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return Fail(ErrorCode::kUnavailable,
                std::string("cannot make a socket pair: ") + std::strerror(errno));
  }
  const int stderr_file = ::memfd_create("worker-stderr", MFD_CLOEXEC);
  const std::string executable =
      (options.executable.empty() ? SelfExecutable() : options.executable).string();

  std::vector<std::string> words = {executable};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> added = options.environment;
  std::vector<char*> envp;
  for (std::string& entry : added) envp.push_back(entry.data());
  for (char** entry = environ; *entry != nullptr; ++entry) envp.push_back(*entry);
  envp.push_back(nullptr);

  const pid_t pid = ::fork();
  if (pid == 0) Exec(options, executable.c_str(), argv.data(), envp.data(), pair[1], stderr_file);
  ::close(pair[1]);
  if (pid < 0) {
    ::close(pair[0]);
    ::close(stderr_file);
    return Fail(ErrorCode::kUnavailable,
                std::string("cannot start a worker: ") + std::strerror(errno), executable);
  }
  WorkerProcess worker;
  worker.pid_ = pid;
  worker.socket_ = pair[0];
  worker.stderr_file_ = stderr_file;
  return worker;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept { *this = std::move(other); }

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  if (this == &other) return *this;
  Kill();
  pid_ = std::exchange(other.pid_, -1);
  socket_ = std::exchange(other.socket_, -1);
  stderr_file_ = std::exchange(other.stderr_file_, -1);
  death_ = std::exchange(other.death_, std::nullopt);
  return *this;
}

WorkerProcess::~WorkerProcess() { Kill(); }

void WorkerProcess::Kill() {
  if (pid_ > 0) Reap(false);
}

void WorkerProcess::Reap(bool timed_out) {
  WorkerDeath death;
  death.timed_out = timed_out;
  // A worker that is ending by itself gets a moment to leave its own exit status.
  int status = 0;
  pid_t ended = 0;
  if (!timed_out && socket_ >= 0) {
    ::shutdown(socket_, SHUT_RDWR);
    for (int i = 0; i < 50 && ended == 0; ++i) {
      ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == 0) ::usleep(2000);
    }
  }
  if (ended == 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  if (WIFSIGNALED(status)) death.signal = WTERMSIG(status);
  if (WIFEXITED(status)) death.exit_code = WEXITSTATUS(status);
  if (stderr_file_ >= 0) {
    std::array<char, 4096> tail{};
    const off_t size = ::lseek(stderr_file_, 0, SEEK_END);
    const ssize_t n = ::pread(stderr_file_, tail.data(), tail.size(),
                              std::max<off_t>(0, size - static_cast<off_t>(tail.size())));
    if (n > 0) death.last_words.assign(tail.data(), static_cast<size_t>(n));
    ::close(stderr_file_);
  }
  if (socket_ >= 0) ::close(socket_);
  pid_ = -1;
  socket_ = stderr_file_ = -1;
  death_ = std::move(death);
}

Result<std::string> WorkerProcess::Call(std::string_view request, double timeout_seconds,
                                        const std::stop_token& stop) {
  if (!alive()) return Fail(ErrorCode::kUnavailable, "the worker is not running");
  const Patience patience{SystemClock().Now() + timeout_seconds, stop};
  std::string answer;
  Passage end = SendMessage(socket_, request, patience);
  if (end == Passage::kComplete) end = ReceiveMessage(socket_, answer, patience);
  if (end == Passage::kComplete) return answer;
  Reap(end == Passage::kDeadline);
  return Fail(death_->timed_out ? ErrorCode::kTimeout : ErrorCode::kUnavailable,
              "the worker " + death_->ToString());
}

WorkerChannel::WorkerChannel() {
  std::thread([] {
    pollfd waiting{kChannelFd, POLLRDHUP, 0};
    while (::poll(&waiting, 1, -1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }).detach();
}

std::optional<std::string> WorkerChannel::Receive() {
  std::string message;
  if (ReceiveMessage(kChannelFd, message, {}) != Passage::kComplete) return std::nullopt;
  return message;
}

bool WorkerChannel::Send(std::string_view answer) {
  return SendMessage(kChannelFd, answer, {}) == Passage::kComplete;
}

}  // namespace atunner
