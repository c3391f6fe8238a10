#include "atunner/mcp/stdio.h"

#include <chrono>
#include <future>
#include <istream>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "atunner/mcp/protocol/session.h"

namespace atunner::mcp {
namespace {

/// Calls beyond this number wait for the first of them.
constexpr size_t kMostAtOnce = 4;

/// Calls that run, each on a thread of its own.
class Calls {
 public:
  void Start(Session::Work work) {
    std::erase_if(running_, [](const std::future<void>& one) {
      return one.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    if (running_.size() >= kMostAtOnce) {
      running_.front().wait();
      running_.erase(running_.begin());
    }
    running_.push_back(std::async(std::launch::async, std::move(work)));
  }

 private:
  std::vector<std::future<void>> running_;  ///< waits for each when destroyed
};

}  // namespace

void ServeLines(const Offer& offer, std::istream& in, std::ostream& out, std::stop_token stop) {
  std::mutex writing;
  Session session(offer, [&](const std::string& message) {
    const std::lock_guard lock(writing);
    out << message << '\n' << std::flush;
  });
  const std::stop_callback cancel(stop, [&] { session.CancelAll(); });
  Calls calls;
  std::string line;
  while (!stop.stop_requested() && std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (Session::Work work = session.Accept(line)) calls.Start(std::move(work));
  }
}

}  // namespace atunner::mcp
