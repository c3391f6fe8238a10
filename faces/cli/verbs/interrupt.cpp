#include "faces/cli/verbs/interrupt.h"

#include <semaphore.h>

#include <csignal>
#include <thread>

namespace atunner::cli {
namespace {

/// Turns Ctrl-C into a stop request. A signal handler may only post a semaphore; a thread waits for
/// that and makes the request. One object lives as long as the process, because a handler has no
/// context of its own.
class Interrupt {
 public:
  Interrupt() {
    ::sem_init(&Signalled(), 0, 0);
    std::thread([this] {
      while (::sem_wait(&Signalled()) != 0) {
      }
      stop_.request_stop();
    }).detach();
    Catch(SIGINT);
  }
  static void Catch(int signal) {
    std::signal(signal, [](int) { ::sem_post(&Signalled()); });
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  static sem_t& Signalled() {
    static sem_t semaphore;
    return semaphore;
  }

  std::stop_source stop_;
};

}  // namespace

std::stop_token InterruptToken() {
  static const Interrupt* interrupt = new Interrupt;
  return interrupt->token();
}

std::stop_token TerminationToken() {
  std::stop_token token = InterruptToken();
  Interrupt::Catch(SIGTERM);
  return token;
}

}  // namespace atunner::cli
