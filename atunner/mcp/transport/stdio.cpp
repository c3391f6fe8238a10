#include "atunner/mcp/transport/stdio.h"

#include <istream>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>

#include "atunner/mcp/protocol/session.h"
#include "atunner/mcp/transport/calls.h"

namespace atunner::mcp {
namespace {

/// Calls beyond this number wait for the first of them.
constexpr size_t kMostAtOnce = 4;

}  // namespace

void ServeLines(const Offer& offer, std::istream& in, std::ostream& out, std::stop_token stop) {
  std::mutex writing;
  const Session::Send send = [&](const std::string& message) {
    const std::lock_guard lock(writing);
    out << message << '\n' << std::flush;
  };
  Session session(offer);
  const std::stop_callback cancel(stop, [&] { session.CancelAll(); });
  Calls calls(kMostAtOnce);
  std::string line;
  while (!stop.stop_requested() && std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (Session::Work work = session.Accept(line, send)) calls.Start(std::move(work));
  }
}

}  // namespace atunner::mcp
