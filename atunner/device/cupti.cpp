#include "atunner/device/cupti.h"

#include <utility>

namespace atunner {
namespace {

Result<DynamicLibrary> OpenLibrary() {
  static const std::vector<std::string> kNames = {"libcupti.so.13", "libcupti.so.12",
                                                  "libcupti.so"};
  std::vector<std::string> folders = CudaLibraryFolders();
  for (const char* own : {"/usr/local/cuda/extras/CUPTI/lib64", "/opt/cuda/extras/CUPTI/lib64"})
    folders.emplace_back(own);
  return DynamicLibrary::Open(kNames, folders);
}

Status BindHost(const DynamicLibrary& library, Cupti& api) {
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.chips, "cuptiProfilerHostGetSupportedChips"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.host_open, "cuptiProfilerHostInitialize"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.host_close, "cuptiProfilerHostDeinitialize"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.add_metrics, "cuptiProfilerHostConfigAddMetrics"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.config_size, "cuptiProfilerHostGetConfigImageSize"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.config_image, "cuptiProfilerHostGetConfigImage"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.passes, "cuptiProfilerHostGetNumOfPasses"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.evaluate, "cuptiProfilerHostEvaluateToGpuValues"));
  return library.Bind(api.text, "cuptiGetResultString");
}

Status BindRange(const DynamicLibrary& library, Cupti& api) {
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.start_up, "cuptiProfilerInitialize"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.chip_name, "cuptiDeviceGetChipName"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.enable, "cuptiRangeProfilerEnable"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.disable, "cuptiRangeProfilerDisable"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.start, "cuptiRangeProfilerStart"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.stop, "cuptiRangeProfilerStop"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.configure, "cuptiRangeProfilerSetConfig"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.data_size, "cuptiRangeProfilerGetCounterDataSize"));
  ATUNNER_RETURN_IF_ERROR(
      library.Bind(api.data_initialize, "cuptiRangeProfilerCounterDataImageInitialize"));
  ATUNNER_RETURN_IF_ERROR(library.Bind(api.decode, "cuptiRangeProfilerDecodeData"));
  return library.Bind(api.data_info, "cuptiRangeProfilerGetCounterDataInfo");
}

Result<Cupti> Open() {
  auto library = OpenLibrary();
  if (!library)
    return Fail(ErrorCode::kUnavailable, "CUPTI is not installed (" + library.error().what + ")",
                "", "it comes with the CUDA toolkit: package cuda-cupti");
  Cupti api;
  api.path = library->path();
  Status bound = BindHost(*library, api);
  if (bound) bound = BindRange(*library, api);
  if (!bound)
    return Fail(ErrorCode::kUnavailable, "CUPTI has no range profiler: it " + bound.error().what,
                api.path, "install CUPTI of CUDA 12.6 or later");
  return api;
}

struct Words {
  cupti::ResultCode code;
  const char* what;
  const char* hint;
};

const Words* WordsOf(cupti::ResultCode code) {
  constexpr const char* kAdministrator =
      "an administrator loads the driver with NVreg_RestrictProfilingToAdminUsers=0, or the "
      "container gets the capability SYS_ADMIN";
  static constexpr Words kAll[] = {
      {cupti::kInsufficientPrivileges, "the driver lets only administrators read counters",
       kAdministrator},
      {cupti::kVirtualizedPrivileges, "the virtual machine may not read the GPU's counters",
       "its host must allow profiling for this virtual GPU"},
      {cupti::kVirtualizedDevice, "a virtual machine's GPU has no counters", ""},
      {cupti::kMultipleSubscribers, "another tool of this process reads counters already",
       "run without ncu, nsys or another profiler"},
      {cupti::kHardwareBusy, "another process reads the GPU's counters",
       "end the other profiler (ncu, DCGM: `dcgmi profile --pause`)"},
      {cupti::kOldProfilerInitialized, "another tool of this process uses CUPTI's old interface",
       "run without it"},
      {cupti::kConfidentialComputing, "counters are off in confidential computing", ""},
      {cupti::kMigDevice, "this slice of a GPU (MIG) has no counters", ""},
  };
  for (const Words& words : kAll) {
    if (words.code == code) return &words;
  }
  return nullptr;
}

}  // namespace

Status Cupti::Check(cupti::ResultCode code, const char* action) const {
  if (code == cupti::kSuccess) return {};
  if (const Words* words = WordsOf(code))
    return Fail(ErrorCode::kUnavailable, words->what, "", words->hint);
  const char* name = nullptr;
  text(code, &name);
  return Fail(ErrorCode::kUnavailable,
              std::string("CUPTI cannot ") + action + ": " +
                  (name != nullptr ? name : "code " + std::to_string(code)),
              path);
}

const Result<Cupti>& SharedCupti() {
  static const Result<Cupti> api = Open();
  return api;
}

Result<std::vector<std::string>> ChipsOfCupti() {
  const Result<Cupti>& api = SharedCupti();
  if (!api) return std::unexpected(api.error());
  cupti::SupportedChips chips;
  ATUNNER_RETURN_IF_ERROR(api->Check(api->chips(&chips), "list its chips"));
  return std::vector<std::string>(chips.names, chips.names + chips.count);
}

}  // namespace atunner
