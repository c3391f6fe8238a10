#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "atunner/base/dylib.h"
#include "atunner/codegen/template/family.h"
#include "atunner/device/profiles.h"
#include "atunner/device/real_device.h"
#include "atunner/measure/calibrate.h"
#include "atunner/measure/probe.h"
#include "atunner/model/json/json.h"
#include "atunner/operators/operator.h"
#include "faces/cli/cli.h"
#include "faces/cli/field_paths.h"
#include "faces/cli/operator_cases.h"
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

Result<int> ProbeDevice(bool calibrate, const Common& common) {
  ATUNNER_TRY(const Target target, ThisGpu("--probe"));
  ATUNNER_TRY(const auto compiler, OpenCompiler());
  ATUNNER_TRY(const auto device, OpenRealDevice(*target.real_index));
  ATUNNER_TRY(const ProbeResult probed, Probe(*device, *compiler));
  const Path file = ProfileFolder() / (probed.profile.name + ".json");
  Json json{{"profile", ToJson(probed.profile)}, {"rates", Json::array()}};
  for (const ProbedRate& rate : probed.rates)
    json["rates"].push_back({{"name", rate.name},
                             {"unit", rate.unit},
                             {"measured", rate.measured},
                             {"stated", rate.stated}});
  if (calibrate) {
    ATUNNER_TRY(const Calibration calibration, Calibrate(*device, *compiler, probed.profile));
    json[kCalibrationKey] = ToJson(calibration);
  }
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(file, DumpJson(json, 2) + "\n"));
  if (common.json) {
    PrintJson(json);
    return 0;
  }
  fmt::print("{}\n{:<26} {:>12} {:>12}\n", target.profile.full_name, "", "measured", "stated");
  for (const ProbedRate& rate : probed.rates)
    fmt::print("{:<26} {:>12.1f} {:>12.1f} {}\n", rate.name, rate.measured, rate.stated, rate.unit);
  if (calibrate) PrintCalibration(json[kCalibrationKey], probed.profile);
  fmt::print("kept in {}\n", file.string());
  return 0;
}

}  // namespace

Result<int> Devices(bool probe, bool calibrate, const Common& common) {
  if (calibrate && !probe)
    return Invalid("--calibrate goes with --probe", "devices",
                   "atunner devices --probe --calibrate");
  if (probe) return ProbeDevice(calibrate, common);
  const auto devices = ListRealDevices();
  Json json{{"present", Json::array()}, {"known", Json::array()}};
  if (devices) {
    for (const RealDeviceInfo& device : *devices) json["present"].push_back(ToJson(device.profile));
  } else {
    json["why_none"] = WithFlags(devices.error().what);
  }
  for (const DeviceProfile& profile : KnownProfiles()) json["known"].push_back(ToJson(profile));
  if (common.json) {
    PrintJson(json);
    return 0;
  }
  if (devices) {
    for (const RealDeviceInfo& device : *devices)
      fmt::print("GPU {}: {} ({} SMs, {:.0f} GB): measured\n", device.index, device.name,
                 device.profile.sms, static_cast<double>(device.memory_bytes) / 1e9);
  } else {
    fmt::print("no GPU here: {}. Every GPU below can be predicted for.\n",
               WithFlags(devices.error().what));
  }
  fmt::print("\n{:<16} {:>4} {:>5} {:>6} {:>8} {:>9} {:>11} {:>12}  {}\n", "name", "cc", "SMs",
             "GHz", "DRAM GB", "GB/s", "fp32 TF/s", "fp16 TC TF/s", "source");
  for (const DeviceProfile& p : KnownProfiles()) {
    fmt::print("{:<16} {:>4} {:>5} {:>6.2f} {:>8} {:>9.0f} {:>11.1f} {:>12.0f}  {}\n", p.name,
               fmt::format("{}.{}", p.cc_major, p.cc_minor), p.sms, p.clock_ghz, p.dram_bytes >> 30,
               p.dram_gbps, p.PeakFlops(DType::kFloat32, false) / 1e12,
               p.PeakFlops(DType::kFloat16, true) / 1e12, p.source);
  }
  return 0;
}

Result<int> Doctor(const Common& common) {
  struct Part {
    const char* name;
    std::vector<std::string> files;
    const char* needed_for;
    const char* how;
  };
  const Part parts[] = {
      {"NVIDIA driver",
       {"libcuda.so.1"},
       "measuring",
       "install the driver of your distribution or from nvidia.com; predictions work without it"},
      {"NVRTC",
       {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
       "compiling: everything",
       "Debian: enable non-free, apt install nvidia-cuda-toolkit; or CUDA from "
       "developer.nvidia.com"},
      {"nvJitLink",
       {"libnvJitLink.so.13", "libnvJitLink.so.12"},
       "PTX candidates",
       "comes with the CUDA toolkit"},
      {"NVML", {"libnvidia-ml.so.1"}, "clocks, power, throttling", "comes with the driver"},
      {"cuBLAS",
       {"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
       "baseline of matmul",
       "comes with the CUDA toolkit"},
      {"cuDNN",
       {"libcudnn.so.9", "libcudnn.so"},
       "baselines of conv2d and softmax",
       "from developer.nvidia.com/cudnn"},
  };
  Json rows = Json::array();
  for (const Part& part : parts) {
    const auto library = DynamicLibrary::Open(part.files, CudaLibraryFolders());
    rows.push_back({{"part", part.name},
                    {"found", library.has_value()},
                    {"path", library ? library->path() : ""},
                    {"needed_for", part.needed_for},
                    {"how_to_get", library ? "" : part.how}});
  }
  const auto headers = CudaIncludeFolders();
  rows.push_back({{"part", "CUDA headers"},
                  {"found", !headers.empty()},
                  {"path", headers.empty() ? "" : headers[0]},
                  {"needed_for", "float16 and bfloat16 kernels"},
                  {"how_to_get", headers.empty() ? "come with the CUDA toolkit" : ""}});
  if (common.json) {
    PrintJson(Json{{"parts", rows}});
    return 0;
  }
  for (const Json& row : rows) {
    fmt::print("{:<14} {}\n", row["part"].get<std::string>(),
               row["found"].get<bool>()
                   ? row["path"].get<std::string>()
                   : fmt::format("missing (for {}): {}", row["needed_for"].get<std::string>(),
                                 row["how_to_get"].get<std::string>()));
  }
  return 0;
}

namespace {

/// The shapes that an operator's help shows.
std::vector<std::vector<int64_t>> ShapesShown(const std::string& help) {
  const std::string flag = "--input-shape ";
  const size_t at = help.find(flag);
  return ParsedShapes(at == std::string::npos ? "" : help.substr(at + flag.size()));
}

/// Which family computes the operator as its help shows it; empty where none does.
std::string FamilyOf(const Operator& op) {
  const std::vector<std::vector<int64_t>> shapes = ShapesShown(WithFlags(op.info().shape_help));
  for (DType dtype : {DType::kBFloat16, DType::kFloat32, DType::kInt32}) {
    const auto spec = op.Instantiate({shapes, dtype, {}});
    if (!spec) continue;
    const Family* family = FamilyOf(Task::Of(*spec));
    if (family != nullptr) return std::string(family->name);
  }
  return "";
}

Json Described(const OperatorInfo& info, const std::string& family) {
  const Operator* gradient = FindOperator(info.name + "_backward");
  Json attributes = Json::array();
  for (const AttributeInfo& attribute : info.attributes)
    attributes.push_back({{"name", attribute.name},
                          {"default", ToString(attribute.fallback)},
                          {"meaning", attribute.meaning}});
  return {{"name", info.name},
          {"summary", info.summary},
          {"shape", WithFlags(info.shape_help)},
          {"attributes", attributes},
          {"family", family.empty() ? Json() : Json(family)},
          {"gradient", gradient == nullptr ? Json() : Json(FamilyOf(*gradient))}};
}

}  // namespace

Result<int> Operators(const std::vector<std::string>& names, const Common& common) {
  std::vector<const Operator*> listed;
  for (const Operator* op : AllOperators()) {
    if (Wanted(*op, names)) listed.push_back(op);
  }
  if (listed.empty())
    return Invalid("no operator is called like that", "", "`atunner operators` lists all");
  Json json = Json::array();
  std::map<std::string, int> families;
  for (const Operator* op : listed) {
    const OperatorInfo& info = op->info();
    const std::string family = FamilyOf(*op);
    ++families[family];
    if (common.json) {
      json.push_back(Described(info, family));
      continue;
    }
    fmt::print("{}: {}\n  {}\n  tuned by: {}\n", info.name, info.summary,
               WithFlags(info.shape_help),
               family.empty() ? "no family, plain kernels only" : family);
    for (const AttributeInfo& attribute : info.attributes)
      fmt::print("  --attr {}={}: {}\n", attribute.name, ToString(attribute.fallback),
                 attribute.meaning);
  }
  if (common.json) {
    PrintJson(json);
    return 0;
  }
  fmt::print("{} operators:", listed.size());
  for (const auto& [family, count] : families)
    fmt::print(" {} {},", count,
               family.empty() ? "with plain kernels only" : "by the family " + family);
  fmt::print(" gradients as NAME_backward\n");
  return 0;
}

Result<int> History(const Common& common) {
  ATUNNER_TRY(const auto store, OpenKnownStore(common.store));
  ATUNNER_TRY(const std::vector<RunRecord> runs, store->Runs(50));
  Json json = Json::array();
  for (const RunRecord& run : runs) {
    json.push_back({{"run", run.id},
                    {"created", run.created},
                    {"status", run.status},
                    {"evidence", run.evidence},
                    {"device", run.device},
                    {"command", run.command}});
    if (!common.json)
      fmt::print("{:<40} {:<9} {:<10} {:<22} {}\n", run.id, run.status, run.evidence, run.device,
                 run.command);
  }
  if (common.json)
    PrintJson(json);
  else if (runs.empty())
    fmt::print("no runs yet\n");
  return 0;
}

namespace {

Result<std::string> TrialLines(Store& store, const RunRecord& run) {
  ATUNNER_TRY(const std::vector<Trial> trials, store.Trials(run.id));
  ATUNNER_TRY(const Json space_json, ParseJson(run.space));
  ATUNNER_TRY(const ParameterSpace space, FromJson<ParameterSpace>(space_json));
  std::string text = fmt::format("{} on {} ({}), {}: {} trials\n{}\n\n", run.id, run.device,
                                 run.evidence, run.status, trials.size(), run.command);
  for (const Trial& trial : trials) {
    const auto ns = trial.ObjectiveNs();
    text += fmt::format("{:>4}  {:>12}  {}  {}\n", trial.number,
                        ns ? FormatTime(*ns) : std::string(Name(trial.verdict.kind)),
                        space.Describe(trial.configuration), trial.verdict.reason.substr(0, 120));
  }
  return text;
}

}  // namespace

Result<int> ShowReport(const std::string& name, const std::string& format, const std::string& out,
                       const Common& common) {
  if (format != "text" && format != "md" && format != "html" && format != "json")
    return Invalid("unknown format '" + format + "'", "--format", "use text, md, html or json");
  ATUNNER_TRY(const auto store, OpenKnownStore(common.store));
  ATUNNER_TRY(const RunRecord run, store->FindRun(name));
  std::string text;
  if (common.json || format == "json") {
    text = run.summary + "\n";
  } else if (format == "text") {
    ATUNNER_TRY(text, TrialLines(*store, run));
  } else {
    ATUNNER_TRY(const Report report, ReportOf(*store, run));
    text = format == "md" ? RenderMarkdown(report) : RenderHtml(report);
  }
  if (!out.empty()) {
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(out, text));
    return 0;
  }
  fmt::print("{}", text);
  return 0;
}

static std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

Result<int> Export(const std::string& name, const std::string& format, const Common& common) {
  if (format != "csv" && format != "json")
    return Invalid("unknown format '" + format + "'", "--format", "use csv or json");
  ATUNNER_TRY(const auto store, OpenKnownStore(common.store));
  ATUNNER_TRY(const RunRecord run, store->FindRun(name));
  ATUNNER_TRY(const std::vector<Trial> trials, store->Trials(run.id));
  ATUNNER_TRY(const Json space_json, ParseJson(run.space));
  ATUNNER_TRY(const ParameterSpace space, FromJson<ParameterSpace>(space_json));
  if (common.json || format == "json") {
    Json all = Json::array();
    for (const Trial& trial : trials) all.push_back(ToJson(trial));
    PrintJson({{"run", run.id},
               {"evidence", run.evidence},
               {"device", run.device},
               {"space", space_json},
               {"trials", all}});
    return 0;
  }
  std::string header = "number,verdict," + run.evidence + "_ns";
  for (const Parameter& parameter : space.parameters) header += "," + parameter.name;
  fmt::print("{}\n", header);
  for (const Trial& trial : trials) {
    const auto ns = trial.ObjectiveNs();
    std::string line = fmt::format("{},{},{}", trial.number, Name(trial.verdict.kind),
                                   ns ? fmt::format("{}", *ns) : "");
    for (const Value& value : trial.configuration.values) line += "," + CsvField(ToString(value));
    fmt::print("{}\n", line);
  }
  return 0;
}

}  // namespace atunner::cli
