// A nats-server of a test's own, which the test may kill and start again.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/command.h"
#include "atunner/base/files.h"

namespace atunner::nats {

/// A port of this machine that nobody listens on now.
inline int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  socklen_t size = sizeof address;
  (void)::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

/// Keeps its streams in a folder, so that they survive Kill().
class LocalServer {
 public:
  /// nullopt where the program is not installed.
  static std::optional<Path> Program() {
    const auto found = FindProgram("nats-server");
    return found ? found : FindProgram("/usr/sbin/nats-server");
  }

  /// `more`: further lines of its configuration.
  explicit LocalServer(const std::string& more = "") {
    const std::string config = "listen: \"127.0.0.1:" + std::to_string(port_) +
                               "\"\njetstream { store_dir: \"" +
                               (folder_.path() / "streams").string() + "\" }\n" + more;
    (void)WriteFileAtomic(folder_.path() / "nats.conf", config);
    Start();
  }
  ~LocalServer() { Kill(); }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  void Start() {
    const std::string program = Program().value_or("").string();
    const std::string config = (folder_.path() / "nats.conf").string();
    const std::string log = (folder_.path() / "nats.log").string();
    process_ = ::fork();
    if (process_ != 0) return;
    ::execl(program.c_str(), "nats-server", "--config", config.c_str(), "--log", log.c_str(),
            nullptr);
    ::_exit(127);
  }
  void Kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  /// As after a loss of its disk.
  void Forget() { (void)std::filesystem::remove_all(folder_.path() / "streams"); }

  int port() const { return port_; }
  std::string Address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  TemporaryDirectory folder_;
  int port_ = FreePort();
  pid_t process_ = -1;
};

}  // namespace atunner::nats
