// `devices`: GPUs of this machine, and the table of known ones.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"
#include "atunner/measure/calibrate.h"
#include "atunner/measure/probe.h"
#include "atunner/model/json/json.h"
#include "faces/cli/output/field_paths.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"
#include "faces/wiring/wiring.h"

namespace atunner::cli {
namespace {

void PrintCalibration(const Json& fitted, const DeviceProfile& profile) {
  const Json expected = ToJson(Calibration::Expected(profile));
  fmt::print("\n{:<26} {:>12} {:>12}\n", "time model", "fitted", "expected");
  for (const auto& [name, value] : fitted.items()) {
    if (value.is_number())
      fmt::print("{:<26} {:>12.3f} {:>12.3f}\n", name, value.get<double>(),
                 expected[name].get<double>());
  }
}

Json ProbeJson(const ProbeResult& probed) {
  Json json{{"profile", ToJson(probed.profile)}, {"rates", Json::array()}};
  for (const ProbedRate& rate : probed.rates)
    json["rates"].push_back({{"name", rate.name},
                             {"unit", rate.unit},
                             {"measured", rate.measured},
                             {"stated", rate.stated}});
  return json;
}

void PrintRates(const ProbeResult& probed, const Target& target) {
  fmt::print("{}\n{:<26} {:>12} {:>12}\n", target.profile.full_name, "", "measured", "stated");
  for (const ProbedRate& rate : probed.rates)
    fmt::print("{:<26} {:>12.1f} {:>12.1f} {}\n", rate.name, rate.measured, rate.stated, rate.unit);
}

/// Measures the first GPU and keeps its profile beside the table's; with `calibrate` also the time
/// model's constants.
Result<int> ProbeDevice(bool calibrate, bool as_json) {
  ATUNNER_TRY(const Target target, ThisGpu("--probe"));
  ATUNNER_TRY(const auto compiler, OpenCompiler());
  ATUNNER_TRY(const auto device, OpenRealDevice(*target.real_index));
  ATUNNER_TRY(const ProbeResult probed, Probe(*device, *compiler));
  const Path file = ProfileFolder() / (probed.profile.name + ".json");
  Json json = ProbeJson(probed);
  if (calibrate) {
    ATUNNER_TRY(const Calibration calibration, Calibrate(*device, *compiler, probed.profile));
    json[kCalibrationKey] = ToJson(calibration);
  }
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(file, DumpJson(json, 2) + "\n"));
  if (as_json) {
    PrintJson(json);
    return 0;
  }
  PrintRates(probed, target);
  if (calibrate) PrintCalibration(json[kCalibrationKey], probed.profile);
  fmt::print("kept in {}\n", file.string());
  return 0;
}

using Present = Result<std::vector<RealDeviceInfo>>;

Json DevicesJson(const Present& devices) {
  Json json{{"present", Json::array()}, {"known", Json::array()}};
  if (devices) {
    for (const RealDeviceInfo& device : *devices) json["present"].push_back(ToJson(device.profile));
  } else {
    json["why_none"] = WithFlags(devices.error().what);
  }
  for (const DeviceProfile& profile : KnownProfiles()) json["known"].push_back(ToJson(profile));
  return json;
}

void PrintPresent(const Present& devices) {
  if (!devices) {
    fmt::print("no GPU here: {}. Every GPU below can be predicted for.\n",
               WithFlags(devices.error().what));
    return;
  }
  for (const RealDeviceInfo& device : *devices)
    fmt::print("GPU {}: {} ({} SMs, {:.0f} GB): measured\n", device.index, device.name,
               device.profile.sms, static_cast<double>(device.memory_bytes) / 1e9);
}

void PrintKnown() {
  fmt::print("\n{:<16} {:>4} {:>5} {:>6} {:>8} {:>9} {:>11} {:>12}  {}\n", "name", "cc", "SMs",
             "GHz", "DRAM GB", "GB/s", "fp32 TF/s", "fp16 TC TF/s", "source");
  for (const DeviceProfile& p : KnownProfiles()) {
    fmt::print("{:<16} {:>4} {:>5} {:>6.2f} {:>8} {:>9.0f} {:>11.1f} {:>12.0f}  {}\n", p.name,
               fmt::format("{}.{}", p.cc_major, p.cc_minor), p.sms, p.clock_ghz, p.dram_bytes >> 30,
               p.dram_gbps, p.PeakFlops(DType::kFloat32, false) / 1e12,
               p.PeakFlops(DType::kFloat16, true) / 1e12, p.source);
  }
}

struct DevicesFlags {
  bool probe = false;
  bool calibrate = false;
};

Result<int> Devices(const DevicesFlags& flags, const Context& context) {
  if (flags.calibrate && !flags.probe)
    return Invalid("--calibrate goes with --probe", "devices",
                   "atunner devices --probe --calibrate");
  if (flags.probe) return ProbeDevice(flags.calibrate, context.common.json);
  const Present devices = ListRealDevices();
  if (context.common.json) {
    PrintJson(DevicesJson(devices));
    return 0;
  }
  PrintPresent(devices);
  PrintKnown();
  return 0;
}

}  // namespace

void AddDevices(VerbList& verbs) {
  const auto flags = std::make_shared<DevicesFlags>();
  CLI::App* verb = verbs.Add("devices", "GPUs of this machine and the table of known ones",
                             [flags](const Context& c) { return Devices(*flags, c); });
  verb->add_flag("--probe", flags->probe, "measure the GPU of this machine and keep its profile");
  verb->add_flag("--calibrate", flags->calibrate,
                 "with --probe: fit the time model's constants to micro-benchmarks");
}

}  // namespace atunner::cli
