#include "atunner/device/nvml.h"

#include "atunner/base/dylib.h"

namespace atunner {

struct Nvml::Api {
  int (*init)() = nullptr;
  int (*by_index)(unsigned, void**) = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  int (*temperature)(void*, int, unsigned*) = nullptr;
  int (*throttle)(void*, unsigned long long*) = nullptr;
  int (*energy)(void*, unsigned long long*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
};

namespace {

// nvml.h: NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, nvmlClocksThrottleReason*
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr Reason kReasons[] = {{0x4, "software power cap"},
                               {0x8, "hardware slowdown"},
                               {0x20, "software thermal"},
                               {0x40, "hardware thermal"},
                               {0x80, "hardware power brake"}};

}  // namespace

std::unique_ptr<Nvml> Nvml::Open(int device_index) {
  const auto library = OpenCudaLibrary(CudaLibrary::kNvml);
  if (!library) return nullptr;
  auto nvml = std::make_unique<Nvml>();
  nvml->api_ = std::make_shared<Api>();
  Api& api = *nvml->api_;
  const bool bound = library->Bind(api.init, "nvmlInit_v2") &&
                     library->Bind(api.by_index, "nvmlDeviceGetHandleByIndex_v2") &&
                     library->Bind(api.clock, "nvmlDeviceGetClockInfo") &&
                     library->Bind(api.power, "nvmlDeviceGetPowerUsage") &&
                     library->Bind(api.temperature, "nvmlDeviceGetTemperature") &&
                     library->Bind(api.driver, "nvmlSystemGetDriverVersion");
  (void)library->Bind(api.throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  (void)library->Bind(api.energy, "nvmlDeviceGetTotalEnergyConsumption");
  if (!bound || api.init() != 0 ||
      api.by_index(static_cast<unsigned>(device_index), &nvml->device_) != 0)
    return nullptr;
  return nvml;
}

ClockState Nvml::Read() const {
  ClockState state;
  unsigned value = 0;
  if (api_->clock(device_, kClockSm, &value) == 0) state.sm_mhz = value;
  if (api_->clock(device_, kClockMemory, &value) == 0) state.memory_mhz = value;
  if (api_->power(device_, &value) == 0) state.power_watts = value / 1000.0;
  if (api_->temperature(device_, 0, &value) == 0) state.temperature_c = value;
  unsigned long long reasons = 0;
  if (api_->throttle == nullptr || api_->throttle(device_, &reasons) != 0) return state;
  state.throttle.clear();
  for (const Reason& reason : kReasons) {
    if (reasons & reason.bit)
      state.throttle += (state.throttle.empty() ? "" : ", ") + std::string(reason.name);
  }
  if (state.throttle.empty()) state.throttle = "none";
  return state;
}

std::optional<double> Nvml::EnergyJoules() const {
  unsigned long long millijoules = 0;
  if (api_->energy == nullptr || api_->energy(device_, &millijoules) != 0) return std::nullopt;
  return static_cast<double>(millijoules) * 1e-3;
}

std::string Nvml::DriverVersion() const {
  char text[96] = "";
  return api_->driver(text, sizeof text) == 0 ? text : "unknown";
}

}  // namespace atunner
