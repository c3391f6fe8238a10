#include "atunner/planning/parallel/topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

namespace atunner::planning {
namespace {

struct KnownLink {
  std::string_view part;  ///< of the device's name
  double bus_gbps;
};

/// In this order: the first part that the name contains.
constexpr KnownLink kLinks[] = {
    {"B200", 720}, {"H100-PCIe", 20}, {"H100 PCIe", 20}, {"H200", 365},
    {"H100", 365}, {"A100-PCIe", 20}, {"A100", 240},     {"V100", 120},
};

constexpr double kPcieGbps = 20;

double Volume(double bytes, int gpus) { return bytes * (gpus - 1) / gpus; }

double Latency(const LinkModel& link, int gpus) {
  return link.alpha_us + link.step_us * (gpus - 2);
}

}  // namespace

LinkModel LinkOf(const DeviceProfile& device) {
  for (const KnownLink& known : kLinks)
    if (device.name.find(known.part) != std::string::npos && known.bus_gbps > kPcieGbps)
      return {.bus_gbps = known.bus_gbps, .source = "typical for NVLink of this GPU"};
    else if (device.name.find(known.part) != std::string::npos)
      break;
  return {.alpha_us = 25, .step_us = 5, .bus_gbps = kPcieGbps, .source = "typical for PCIe"};
}

Result<LinkModel> FitLink(const CommTable& table) {
  std::map<int64_t, double> times;  // microseconds by bytes; final rows replace those of the screen
  for (const CommRow& row : table.rows)
    if (row.collective == Collective::kAllReduce && !row.choice) times[row.bytes] = MedianUs(row);
  if (times.size() < 2)
    return Invalid("it needs all-reduces of two sizes or more by NCCL's own choice", "the table");
  // t = a + b v, weighted by 1 / t: relative errors count.
  double w = 0, wv = 0, wvv = 0, wt = 0, wvt = 0;
  for (const auto& [bytes, us] : times) {
    const double v = 2 * Volume(static_cast<double>(bytes), table.gpus), weight = 1 / (us * us);
    w += weight;
    wv += weight * v;
    wvv += weight * v * v;
    wt += weight * us;
    wvt += weight * v * us;
  }
  const double slope = (w * wvt - wv * wt) / (w * wvv - wv * wv);
  const double intercept = (wt - slope * wv) / w;
  if (!(slope > 0) || !(intercept > 0))
    return Invalid("its times do not grow with the size", "the table");
  LinkModel link{.bus_gbps = 1e-3 / slope, .source = "measured all-reduces"};
  link.alpha_us = std::max(1.0, intercept - link.step_us * (table.gpus - 2));
  return link;
}

Result<std::pair<int, std::string>> ParseGpus(std::string_view text, const std::string& field) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const auto rest = static_cast<size_t>(end - text.data());
  if (error != std::errc() || count < 1 || count > 1024 || rest + 1 >= text.size() ||
      text[rest] != 'x')
    return Invalid("'" + std::string(text) + "' is no number of GPUs", field,
                   "for example 8xH200, up to 1024");
  return std::pair(count, std::string(text.substr(rest + 1)));
}

double AllReduceUs(const LinkModel& link, double bytes, int gpus) {
  if (gpus < 2 || bytes <= 0) return 0;
  return Latency(link, gpus) + 2e-3 * Volume(bytes, gpus) / link.bus_gbps;
}

double GatherUs(const LinkModel& link, double bytes, int gpus) {
  if (gpus < 2 || bytes <= 0) return 0;
  return Latency(link, gpus) / 2 + 1e-3 * Volume(bytes, gpus) / link.bus_gbps;
}

double SendUs(const LinkModel& link, double bytes) {
  return link.alpha_us / 2 + 1e-3 * bytes / link.bus_gbps;
}

}  // namespace atunner::planning
