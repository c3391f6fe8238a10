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

/// How the transfer of a message ended.
enum class TransferEnd { kComplete, kClosed, kDeadline };

constexpr double kStopPollMs = 50;

/// Limits of waiting for the other end: until `deadline` (SystemClock seconds; negative = no limit)
/// or until `stop` is requested.
struct WaitLimit {
  double deadline = -1;
  std::stop_token stop;
};

/// How long the next poll may wait, ms (-1 = no limit); nullopt if the limit is over. A stop can
/// only be seen between polls, which are short if one is possible.
std::optional<int> WaitMs(const WaitLimit& limit) {
  if (limit.deadline < 0) return -1;
  const double left = limit.deadline - SystemClock().Now();
  if (left <= 0 || limit.stop.stop_requested()) return std::nullopt;
  return static_cast<int>(
      std::min(left * 1000.0 + 1.0, limit.stop.stop_possible() ? kStopPollMs : 1e9));
}

/// Sends or receives exactly `size` bytes. `pass(at, size)` is a non-blocking send or recv;
/// `events` is the poll event that it waits for.
template <class Byte, class Pass>
TransferEnd TransferAll(int fd, short events, Byte* at, size_t size, const WaitLimit& limit,
                        const Pass& pass) {
  while (size > 0) {
    const std::optional<int> wait_ms = WaitMs(limit);
    if (!wait_ms) return TransferEnd::kDeadline;
    pollfd waiting{fd, events, 0};
    const int ready = ::poll(&waiting, 1, *wait_ms);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = pass(at, size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return TransferEnd::kClosed;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return TransferEnd::kComplete;
}

/// MSG_NOSIGNAL, so that a dead peer gives kClosed instead of SIGPIPE.
TransferEnd SendAll(int fd, std::string_view bytes, const WaitLimit& limit) {
  return TransferAll(fd, POLLOUT, bytes.data(), bytes.size(), limit,
                     [fd](const char* at, size_t size) {
                       return ::send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
                     });
}

TransferEnd ReceiveAll(int fd, char* to, size_t size, const WaitLimit& limit) {
  return TransferAll(fd, POLLIN, to, size, limit,
                     [fd](char* at, size_t most) { return ::recv(fd, at, most, MSG_DONTWAIT); });
}

TransferEnd SendMessage(int fd, std::string_view message, const WaitLimit& limit) {
  const uint64_t size = message.size();
  const TransferEnd head = SendAll(fd, {reinterpret_cast<const char*>(&size), sizeof size}, limit);
  return head == TransferEnd::kComplete ? SendAll(fd, message, limit) : head;
}

TransferEnd ReceiveMessage(int fd, std::string& message, const WaitLimit& limit) {
  uint64_t size = 0;
  const TransferEnd head = ReceiveAll(fd, reinterpret_cast<char*>(&size), sizeof size, limit);
  if (head != TransferEnd::kComplete) return head;
  if (size > kMaxMessageBytes) return TransferEnd::kClosed;
  message.resize(size);
  return ReceiveAll(fd, message.data(), size, limit);
}

/// In the child: 0 and 1 are /dev/null, 2 is `stderr_file`, 3 the channel; all others are closed.
void SetDescriptors(int socket, int stderr_file) {
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
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  return pointers;
}

/// The child between fork and exec, which may use async-signal-safe calls only: sets up its file
/// descriptors, priority and limits, and executes the worker.
[[noreturn]] void Exec(const WorkerOptions& options, const char* executable, char** argv,
                       char** envp, int socket, int stderr_file) {
  SetDescriptors(socket, stderr_file);
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

/// Forks and executes the worker in the child; the child's id, or -1 with errno set.
pid_t Fork(const WorkerOptions& options, const std::string& executable, int socket,
           int stderr_file) {
  // Made before fork: the child must not allocate.
  std::vector<std::string> words = {executable};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv = Pointers(words);
  argv.push_back(nullptr);
  std::vector<std::string> added = options.environment;
  std::vector<char*> envp = Pointers(added);
  for (char** entry = environ; *entry != nullptr; ++entry) envp.push_back(*entry);
  envp.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) Exec(options, executable.c_str(), argv.data(), envp.data(), socket, stderr_file);
  return pid;
}

/// The last 4 KiB of a file.
std::string TailOf(int file) {
  std::array<char, 4096> tail{};
  const off_t size = ::lseek(file, 0, SEEK_END);
  const ssize_t n = ::pread(file, tail.data(), tail.size(),
                            std::max<off_t>(0, size - static_cast<off_t>(tail.size())));
  return n > 0 ? std::string(tail.data(), static_cast<size_t>(n)) : "";
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

  const pid_t pid = Fork(options, executable, pair[1], stderr_file);
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
  const int status = EndProcess(timed_out);
  if (WIFSIGNALED(status)) death.signal = WTERMSIG(status);
  if (WIFEXITED(status)) death.exit_code = WEXITSTATUS(status);
  if (stderr_file_ >= 0) {
    death.last_words = TailOf(stderr_file_);
    ::close(stderr_file_);
  }
  if (socket_ >= 0) ::close(socket_);
  pid_ = -1;
  socket_ = stderr_file_ = -1;
  death_ = std::move(death);
}

int WorkerProcess::EndProcess(bool timed_out) {
  int status = 0;
  pid_t ended = 0;
  // A worker that is ending by itself gets 100 ms to leave its own exit status.
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
  return status;
}

Result<std::string> WorkerProcess::Call(std::string_view request, double timeout_seconds,
                                        const std::stop_token& stop) {
  if (!alive()) return Fail(ErrorCode::kUnavailable, "the worker is not running");
  const WaitLimit limit{SystemClock().Now() + timeout_seconds, stop};
  std::string answer;
  TransferEnd end = SendMessage(socket_, request, limit);
  if (end == TransferEnd::kComplete) end = ReceiveMessage(socket_, answer, limit);
  if (end == TransferEnd::kComplete) return answer;
  Reap(end == TransferEnd::kDeadline);
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
  if (ReceiveMessage(kChannelFd, message, {}) != TransferEnd::kComplete) return std::nullopt;
  return message;
}

bool WorkerChannel::Send(std::string_view answer) {
  return SendMessage(kChannelFd, answer, {}) == TransferEnd::kComplete;
}

}  // namespace atunner
