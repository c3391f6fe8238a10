#include "faces/serve/announcements.h"

#include <unistd.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/base/clock.h"
#include "atunner/http/origin.h"
#include "faces/serve/metrics.h"

namespace atunner::serve {
namespace {

constexpr std::chrono::milliseconds kAnnounceEvery{200};
constexpr std::chrono::milliseconds kReconnectEvery{1000};

/// The address at which other machines reach a server that listens on all of its own.
std::string ReachableUrl(const ServeOptions& options, const std::string& url) {
  if (!options.advertise.empty()) return options.advertise;
  if (options.address != "0.0.0.0" && options.address != "::") return url;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return url;
  return url.substr(0, url.find("//") + 2) + name + url.substr(url.rfind(':'));
}

}  // namespace

Result<std::unique_ptr<Announcements>> Announcements::Start(const ServeOptions& options,
                                                            const std::string& url,
                                                            queue::Queue& queue, Log& log) {
  if (options.queue.empty()) return nullptr;
  ATUNNER_TRY(nats::Url where, nats::ParseUrl(options.queue));
  const std::string server = ReachableUrl(options, url);
  ATUNNER_TRY(const http::Origin checked, http::ParseOrigin(server, "--advertise"));
  auto made = std::unique_ptr<Announcements>(
      new Announcements(std::move(where), options, server, queue, log));
  const Status connected = made->client_.Connect();
  if (!connected && connected.error().code == ErrorCode::kInvalidInput)
    return std::unexpected(connected.error());
  made->Note(connected);
  made->thread_ = std::thread([one = made.get()] { one->Loop(); });
  return made;
}

Announcements::Announcements(nats::Url url, const ServeOptions& options, const std::string& server,
                             queue::Queue& queue, Log& log)
    : log_(log),
      client_(std::move(url), {.name = "atunner serve", .authorities = options.authorities}),
      announcer_(queue, client_, SystemClock(), {server, options.lease_seconds}) {}

Announcements::~Announcements() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Announcements::Loop() {
  while (true) {
    const Status looked = announcer_.Look();
    Note(looked);
    std::unique_lock lock(mutex_);
    consumers_ = announcer_.consumers();
    if (changed_.wait_for(lock, looked ? kAnnounceEvery : kReconnectEvery,
                          [this] { return ending_; }))
      return;
  }
}

void Announcements::Note(const Status& looked) {
  {
    const std::scoped_lock lock(mutex_);
    if (connected_ == looked.has_value()) return;
    connected_ = looked.has_value();
  }
  if (looked) return log_.Write("info", "jobs are announced again", {});
  log_.Write("warning", "jobs cannot be announced; workers that know this server still get them",
             {{"what", looked.error().ToString()}});
}

std::string Announcements::MetricsText() const {
  const std::scoped_lock lock(mutex_);
  std::map<std::string, double> lags;
  for (const nats::ConsumerState& one : consumers_)
    lags[Label("consumer", one.name)] = static_cast<double>(one.Lag());
  return Metrics::Gauge("atunner_queue_connected", "1 while the nats-server answers.",
                        {{"", connected_ ? 1.0 : 0.0}}) +
         Metrics::Gauge("atunner_queue_lag",
                        "Messages about jobs that are not acknowledged, by class of jobs.", lags);
}

}  // namespace atunner::serve
