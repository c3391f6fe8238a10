// `doctor`: what was found on this machine, what is missing, and how to get it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/base/dylib.h"
#include "atunner/base/sandbox.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {
namespace {

struct Part {
  const char* name;
  CudaLibrary library;
  const char* needed_for;
  const char* how;
};

std::vector<Part> Parts() {
  return {
      {"NVIDIA driver", CudaLibrary::kDriver, "measuring",
       "install the driver of your distribution or from nvidia.com; predictions work without it"},
      {"NVRTC", CudaLibrary::kNvrtc, "compiling: everything",
       "Debian: enable non-free, apt install nvidia-cuda-toolkit; or CUDA from "
       "developer.nvidia.com"},
      {"nvJitLink", CudaLibrary::kNvJitLink, "PTX candidates", "comes with the CUDA toolkit"},
      {"NVML", CudaLibrary::kNvml, "clocks, power, throttling", "comes with the driver"},
      {"cuBLAS", CudaLibrary::kCublas, "baseline of matmul", "comes with the CUDA toolkit"},
      {"cuDNN", CudaLibrary::kCudnn, "baselines of conv2d and softmax",
       "from developer.nvidia.com/cudnn"},
  };
}

Json HeadersRow() {
  const auto folders = CudaIncludeFolders();
  return {{"part", "CUDA headers"},
          {"found", !folders.empty()},
          {"path", folders.empty() ? "" : folders[0]},
          {"needed_for", "float16 and bfloat16 kernels"},
          {"how_to_get", folders.empty() ? "come with the CUDA toolkit" : ""}};
}

Json SandboxRow() {
  const SandboxSupport support = FindSandboxSupport();
  return {{"part", "sandbox"},
          {"found", support.Full()},
          {"path", support.ToString()},
          {"needed_for", "jobs of others; the kernel gives " + support.ToString()},
          {"how_to_get", support.Full() ? "" : "Linux 5.13 or later with Landlock and seccomp"}};
}

Json RowsOfParts() {
  Json rows = Json::array();
  for (const Part& part : Parts()) {
    const auto library = OpenCudaLibrary(part.library);
    rows.push_back({{"part", part.name},
                    {"found", library.has_value()},
                    {"path", library ? library->path() : ""},
                    {"needed_for", part.needed_for},
                    {"how_to_get", library ? "" : part.how}});
  }
  rows.push_back(HeadersRow());
  rows.push_back(SandboxRow());
  return rows;
}

Result<int> Doctor(const Context& context) {
  const Json rows = RowsOfParts();
  if (context.common.json) {
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

}  // namespace

void AddDoctor(VerbList& verbs) {
  verbs.Add("doctor", "what was found on this machine, what is missing, how to get it", Doctor);
}

}  // namespace atunner::cli
