#include "atunner/compile/nvrtc_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <regex>

#include "atunner/base/clock.h"
#include "atunner/base/dylib.h"
#include "atunner/compile/cubin.h"
#include "atunner/compile/virtual_headers.h"

namespace atunner {
namespace {

// The part of NVRTC's C interface that is used (nvrtc.h of CUDA 12 and 13; stable since 11).
using NvrtcProgram = struct NvrtcProgramTag*;
struct Nvrtc {
  int (*version)(int*, int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*create)(NvrtcProgram*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(NvrtcProgram*) = nullptr;
  int (*compile)(NvrtcProgram, int, const char* const*) = nullptr;
  int (*ptx_size)(NvrtcProgram, size_t*) = nullptr;
  int (*ptx)(NvrtcProgram, char*) = nullptr;
  int (*cubin_size)(NvrtcProgram, size_t*) = nullptr;
  int (*cubin)(NvrtcProgram, char*) = nullptr;
  int (*log_size)(NvrtcProgram, size_t*) = nullptr;
  int (*log)(NvrtcProgram, char*) = nullptr;
  int (*add_name)(NvrtcProgram, const char*) = nullptr;
  int (*lowered_name)(NvrtcProgram, const char*, const char**) = nullptr;
};

Error NvrtcMissing(Error error) {
  error.what = "NVRTC, CUDA's run-time compiler, is not installed (" + error.what + ")";
  error.hint =
      "on Debian enable the non-free component and `apt install nvidia-cuda-toolkit`, or install "
      "CUDA from "
      "developer.nvidia.com, or `pip install nvidia-cuda-nvrtc`; set CUDA_HOME if it lies in an "
      "unusual place";
  return error;
}

Result<Nvrtc> OpenNvrtc() {
  auto library = OpenCudaLibrary(CudaLibrary::kNvrtc);
  if (!library) return std::unexpected(NvrtcMissing(library.error()));
  Nvrtc api;
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.version, "nvrtcVersion"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.error_string, "nvrtcGetErrorString"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.create, "nvrtcCreateProgram"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.destroy, "nvrtcDestroyProgram"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.compile, "nvrtcCompileProgram"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.ptx_size, "nvrtcGetPTXSize"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.ptx, "nvrtcGetPTX"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.cubin_size, "nvrtcGetCUBINSize"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.cubin, "nvrtcGetCUBIN"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.log_size, "nvrtcGetProgramLogSize"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.log, "nvrtcGetProgramLog"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.add_name, "nvrtcAddNameExpression"));
  ATUNNER_RETURN_IF_ERROR(library->Bind(api.lowered_name, "nvrtcGetLoweredName"));
  return api;
}

// nvJitLink assembles PTX. Its functions carry the version in their names since CUDA 12.
struct JitLink {
  int (*create)(void**, uint32_t, const char**) = nullptr;
  int (*destroy)(void**) = nullptr;
  int (*add_data)(void*, int, const void*, size_t, const char*) = nullptr;
  int (*complete)(void*) = nullptr;
  int (*cubin_size)(void*, size_t*) = nullptr;
  int (*cubin)(void*, void*) = nullptr;
  int (*error_size)(void*, size_t*) = nullptr;
  int (*error)(void*, char*) = nullptr;
  int (*info_size)(void*, size_t*) = nullptr;
  int (*info)(void*, char*) = nullptr;
};

template <class Function>
Status BindVersioned(const DynamicLibrary& library, Function*& slot, const std::string& name) {
  for (const char* suffix : {"_13_0", "_12_9", "_12_8", "_12_4", "_12_0"}) {
    if (library.Bind(slot, ("__" + name + suffix).c_str())) return {};
  }
  return library.Bind(slot, name.c_str());
}

Result<JitLink> OpenJitLink() {
  ATUNNER_TRY(const DynamicLibrary library, OpenCudaLibrary(CudaLibrary::kNvJitLink));
  JitLink api;
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.create, "nvJitLinkCreate"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.destroy, "nvJitLinkDestroy"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.add_data, "nvJitLinkAddData"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.complete, "nvJitLinkComplete"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.cubin_size, "nvJitLinkGetLinkedCubinSize"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.cubin, "nvJitLinkGetLinkedCubin"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.error_size, "nvJitLinkGetErrorLogSize"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.error, "nvJitLinkGetErrorLog"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.info_size, "nvJitLinkGetInfoLogSize"));
  ATUNNER_RETURN_IF_ERROR(BindVersioned(library, api.info, "nvJitLinkGetInfoLog"));
  return api;
}

bool HasOption(const SourceUnit& source, std::string_view prefix) {
  return std::ranges::any_of(source.options,
                             [&](const std::string& option) { return option.starts_with(prefix); });
}

/// An option of nvcc in NVRTC's spelling; nullopt for one that has no effect here.
std::optional<std::string> Translate(const std::string& option) {
  if (option == "-use_fast_math") return "--use_fast_math";
  if (option.starts_with("-std=") || option.starts_with("-maxrregcount")) return "-" + option;
  if (option.starts_with("-O") || option.starts_with("-arch") ||
      option.starts_with("--gpu-architecture"))
    return std::nullopt;
  if (option.starts_with("-Xcompiler") || option == "-g" || option == "-w" ||
      option.starts_with("-gencode"))
    return std::nullopt;
  return option;
}

/// True if the text of the source uses no textures, surfaces or declarations of the CUDA runtime.
/// NVRTC then need not read these, which takes as long as compiling a small kernel.
bool IsMinimal(const SourceUnit& source) {
  std::string text = source.text;
  for (const char* harmless :
       {"#include <cuda_fp16.h>", "#include <cuda_bf16.h>", "#include <cuda_fp8.h>"}) {
    if (const size_t at = text.find(harmless); at != std::string::npos)
      text.erase(at, std::string_view(harmless).size());
  }
  return std::ranges::none_of(
      std::array<std::string_view, 5>{"#include", "cuda", "tex", "surf", "<<<"},
      [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

std::vector<std::string> OptionsFor(const CompileRequest& request) {
  const bool ptx_only = request.arch.starts_with("compute_");
  std::vector<std::string> options = {"--gpu-architecture=" + request.arch, "-default-device",
                                      "-lineinfo", "-DATUNNER=1",
                                      "--device-int128"};  // nvcc's default
  if (!ptx_only) options.emplace_back("--ptxas-options=-v");
  if (!HasOption(request.source, "-std") && !HasOption(request.source, "--std"))
    options.emplace_back("--std=c++17");
  for (const auto& [name, value] : request.source.defines)
    options.push_back(value.empty() ? "-D" + name : "-D" + name + "=" + value);
  for (const std::string& folder : request.source.include_folders) options.push_back("-I" + folder);
  for (const std::string& folder : CudaIncludeFolders()) options.push_back("-I" + folder);
  for (const std::string& option : request.source.options) {
    if (auto translated = Translate(option)) options.push_back(*std::move(translated));
  }
  return options;
}

/// True if the log refuses the keyword `register`, of which nvcc only warns.
bool RefusesRegister(std::string_view log) {
  return log.find("\"register\"") != std::string_view::npos ||
         log.find("'register'") != std::string_view::npos;
}

/// Replaces the __host__ and __device__ of lambdas by blanks. nvcc has an option for them and NVRTC
/// does not; in device code they have no effect.
std::string WithoutLambdaAnnotations(std::string text) {
  static const std::regex annotated(R"(\]\s*((?:__(?:host|device)__\s*)+)[({])");
  std::smatch found;
  for (size_t at = 0; std::regex_search(text.cbegin() + static_cast<ptrdiff_t>(at), text.cend(),
                                        found, annotated);) {
    const size_t begin = at + static_cast<size_t>(found.position(1));
    at = begin + static_cast<size_t>(found.length(1));
    std::replace_if(
        text.begin() + static_cast<ptrdiff_t>(begin), text.begin() + static_cast<ptrdiff_t>(at),
        [](char c) { return c != '\n'; }, ' ');
  }
  return text;
}

class NvrtcCompiler : public Compiler {
 public:
  NvrtcCompiler(Nvrtc api, int major, int minor)
      : api_(api),
        version_(fmt::format("NVRTC {}.{}", major, minor)),
        knows_minimal_(std::pair(major, minor) >= std::pair(12, 4)) {}

  std::string Version() const override { return version_; }

  Result<CompileOutcome> Compile(const CompileRequest& request,
                                 const std::stop_token& = {}) override {
    const double start = SystemClock().Now();
    CompiledModule module;
    module.arch = request.arch;
    module.compiler = version_;
    CompileOutcome outcome = CompileLanguage(request, std::move(module));
    if (request.source.language == Language::kCudaCpp && IsTooOld(outcome))
      return TooOld(request.arch);
    if (outcome.module) outcome.module->compile_seconds = SystemClock().Now() - start;
    return outcome;
  }

 private:
  CompileOutcome CompileLanguage(const CompileRequest& request, CompiledModule module) {
    if (request.source.language == Language::kPtx) return Assemble(request, std::move(module));
    if (request.source.language == Language::kCubin) {
      module.cubin = request.source.text;
      return Finish(request, std::move(module), "");
    }
    if (knows_minimal_ && IsMinimal(request.source)) {
      CompileOutcome outcome = CompileCuda(request, module, {"--minimal"});
      if (outcome.module) return outcome;
    }
    return CompileCuda(request, module, {});
  }

  /// True if NVRTC does not know the architecture: no candidate can be compiled.
  static bool IsTooOld(const CompileOutcome& outcome) {
    return !outcome.module && outcome.error.find("--gpu-architecture") != std::string::npos;
  }
  std::unexpected<Error> TooOld(const std::string& arch) const {
    return Fail(ErrorCode::kUnavailable, version_ + " does not compile for " + arch, "",
                "install a newer CUDA (Hopper's sm_90a needs 12.0, Blackwell 12.8) and set "
                "CUDA_HOME, or name an older GPU "
                "by request.target");
  }

  /// Compiles, and mends what NVRTC rejects and nvcc accepts: names of the host's C library,
  /// `register`, annotated lambdas, and missing headers, which are replaced by empty ones and named
  /// in the log.
  CompileOutcome CompileCuda(CompileRequest request, const CompiledModule& module,
                             std::vector<std::string> options) {
    std::ranges::move(OptionsFor(request), std::back_inserter(options));
    VirtualHeaders headers = KnownHeaders();
    std::string absent;
    CompileOutcome outcome = CompileWith(headers, request, module, options);
    while (!outcome.module && Mend(outcome.error, request, options, headers, absent))
      outcome = CompileWith(headers, request, module, options);
    if (absent.empty()) return outcome;
    if (outcome.module) {
      outcome.module->log = "compiled without " + absent + ", not found\n" + outcome.module->log;
    } else {
      outcome.error = "without " + absent + ", not found:\n" + outcome.error;
    }
    return outcome;
  }

  /// Changes one thing that the error names, and adds an empty header to `absent`; false if there
  /// is nothing left to try.
  static bool Mend(const std::string& error, CompileRequest& request,
                   std::vector<std::string>& options, VirtualHeaders& headers,
                   std::string& absent) {
    const auto add = [&](const std::string& option) {
      if (std::ranges::find(options, option) != options.end()) return false;
      options.push_back(option);
      return true;
    };
    if (MissesImplicitName(error) && add(std::string("--pre-include=") + kImplicitHeader))
      return true;
    if (RefusesRegister(error) && add("-Dregister=")) return true;
    if (error.find("requires --extended-lambda") != std::string::npos) {
      std::string mended = WithoutLambdaAnnotations(request.source.text);
      if (mended == request.source.text) return false;
      request.source.text = std::move(mended);
      return true;
    }
    const auto header = AbsentHeader(error);
    if (!header || !headers.emplace(*header, "").second) return false;
    absent += (absent.empty() ? "<" : ", <") + *header + ">";
    return true;
  }

  CompileOutcome CompileWith(const VirtualHeaders& headers, const CompileRequest& request,
                             CompiledModule module, const std::vector<std::string>& options) {
    std::vector<const char*> header_texts;
    std::vector<const char*> header_names;
    for (const auto& [name, text] : headers) {
      header_texts.push_back(text.data());
      header_names.push_back(name.c_str());
    }
    NvrtcProgram program = nullptr;
    if (const int error = api_.create(
            &program, request.source.text.c_str(), request.source.name.c_str(),
            static_cast<int>(header_texts.size()), header_texts.data(), header_names.data())) {
      return {std::nullopt, std::string("NVRTC refuses the source: ") + api_.error_string(error),
              false};
    }
    CompileOutcome outcome = CompileProgram(program, request, std::move(module), options);
    api_.destroy(&program);
    return outcome;
  }

  CompileOutcome CompileProgram(NvrtcProgram program, const CompileRequest& request,
                                CompiledModule module, const std::vector<std::string>& options) {
    for (const std::string& entry : request.entries) api_.add_name(program, entry.c_str());
    std::vector<const char*> raw;
    for (const std::string& option : options) raw.push_back(option.c_str());
    const int error = api_.compile(program, static_cast<int>(raw.size()), raw.data());
    const std::string log = Read(program, api_.log_size, api_.log);
    if (error != 0) {
      std::string message = log.empty() ? std::string(api_.error_string(error)) : ErrorsOf(log);
      return {std::nullopt, std::move(message), false};
    }
    module.ptx = Read(program, api_.ptx_size, api_.ptx);
    while (!module.ptx.empty() && module.ptx.back() == '\0') module.ptx.pop_back();
    if (!request.arch.starts_with("compute_"))
      module.cubin = Read(program, api_.cubin_size, api_.cubin);
    return Finish(request, std::move(module), log, LoweredNames(program, request.entries));
  }

  using EntryNames = std::vector<std::pair<std::string, std::string>>;  ///< entry, symbol

  EntryNames LoweredNames(NvrtcProgram program, const std::vector<std::string>& entries) const {
    EntryNames names;
    for (const std::string& entry : entries) {
      const char* lowered = nullptr;
      if (api_.lowered_name(program, entry.c_str(), &lowered) == 0)
        names.emplace_back(entry, lowered);
    }
    return names;
  }

  /// One of nvJitLink's results: its size, then its bytes.
  template <class Get>
  static std::string Linked(void* handle, int (*size_of)(void*, size_t*), const Get& get) {
    size_t size = 0;
    std::string bytes;
    if (size_of(handle, &size) == 0 && size > 0) {
      bytes.resize(size);
      get(handle, bytes.data());
    }
    return bytes;
  }

  CompileOutcome Assemble(const CompileRequest& request, CompiledModule module) {
    module.ptx = request.source.text;
    if (request.arch.starts_with("compute_")) {  // PTX is wanted, and here it is
      EntryNames names;
      for (const std::string& entry : request.entries) names.emplace_back(entry, entry);
      return Finish(request, std::move(module), "", names);
    }
    static const Result<JitLink> linker = OpenJitLink();
    if (!linker)
      return {std::nullopt, "PTX candidates need nvJitLink: " + linker.error().ToString(), false};
    const std::string arch = "-arch=" + request.arch;
    std::vector<std::string> options = {arch, "-verbose", "-lineinfo"};
    for (const std::string& option : request.source.options) {
      if (option.starts_with("--maxrregcount=")) options.push_back(option.substr(1));
    }
    std::vector<const char*> raw;
    for (const std::string& option : options) raw.push_back(option.c_str());
    void* handle = nullptr;
    if (linker->create(&handle, static_cast<uint32_t>(raw.size()), raw.data()) != 0)
      return {std::nullopt, "nvJitLink refuses " + request.arch, false};
    constexpr int kInputPtx = 2;
    const bool ok = linker->add_data(handle, kInputPtx, module.ptx.c_str(), module.ptx.size() + 1,
                                     request.source.name.c_str()) == 0 &&
                    linker->complete(handle) == 0;
    std::string log = Linked(handle, linker->info_size, linker->info);
    std::string error = Linked(handle, linker->error_size, linker->error);
    if (ok)
      module.cubin = Linked(handle, linker->cubin_size,
                            [&](void* h, char* out) { return linker->cubin(h, out); });
    linker->destroy(&handle);
    if (!ok)
      return {std::nullopt, error.empty() ? "nvJitLink could not assemble the PTX" : error, false};
    return Finish(request, std::move(module), log);
  }

  /// Gives kernels the names under which they were requested, e.g. "k<4>" for "_Z1kILi4EEvPf".
  static void NameEntries(const EntryNames& names, std::vector<KernelResources>& kernels) {
    for (KernelResources& kernel : kernels) {
      for (const auto& [entry, lowered] : names) {
        if (kernel.mangled == lowered) kernel.entry = entry;
      }
    }
  }

  CompileOutcome Finish(const CompileRequest& request, CompiledModule module,
                        const std::string& log, const EntryNames& names = {}) {
    if (!module.cubin.empty()) {
      auto kernels = ReadCubin(module.cubin);
      if (!kernels) return {std::nullopt, request.source.name + ": " + kernels.error().what, false};
      module.kernels = *std::move(kernels);
      ApplySpills(log, module.kernels);
    } else {
      for (const auto& [entry, lowered] : names)
        module.kernels.push_back({.entry = entry, .mangled = lowered, .registers = 32});
    }
    NameEntries(names, module.kernels);
    for (const std::string& entry : request.entries) {
      if (module.Find(entry) == nullptr)
        return {std::nullopt, request.source.name + ": there is no kernel '" + entry + "'", false};
    }
    module.log = WarningsOf(log);
    module.binary = DigestOf(module.cubin.empty() ? module.ptx : module.cubin);
    return {std::move(module), "", false};
  }

  /// The log without ptxas's resource statistics.
  static std::string WarningsOf(const std::string& log) {
    std::string warnings;
    size_t at = 0;
    while (at < log.size()) {
      const size_t end = std::min(log.find('\n', at), log.size());
      const std::string line = log.substr(at, end - at);
      if (!line.starts_with("ptxas info") && line.find("bytes stack frame") == std::string::npos &&
          line.find_first_not_of(" \0") != std::string::npos) {
        warnings += line + "\n";
      }
      at = end + 1;
    }
    return warnings;
  }

  /// The log of a failed compilation without its warnings, which may be many and come first.
  static std::string ErrorsOf(std::string_view log) {
    std::string errors;
    while (!log.empty() && log.back() == '\0') log.remove_suffix(1);
    for (size_t at = 0; at < log.size();) {
      const size_t end = std::min(log.find("\n\n", at), log.size());
      const std::string_view message = log.substr(at, end - at);
      const std::string_view head = message.substr(0, message.find('\n'));
      if (head.find(": warning ") == std::string_view::npos && !head.starts_with("Remark:"))
        errors.append(errors.empty() ? "" : "\n\n").append(message);
      at = end + 2;
    }
    while (errors.ends_with('\n')) errors.pop_back();
    return errors.empty() ? std::string(log) : errors;
  }

  static std::string Read(NvrtcProgram program, int (*size_of)(NvrtcProgram, size_t*),
                          int (*get)(NvrtcProgram, char*)) {
    size_t size = 0;
    if (size_of(program, &size) != 0 || size == 0) return "";
    std::string bytes(size, '\0');
    get(program, bytes.data());
    return bytes;
  }

  Nvrtc api_;
  std::string version_;
  bool knows_minimal_;
};

}  // namespace

Result<std::unique_ptr<Compiler>> MakeNvrtcCompiler() {
  ATUNNER_TRY(const Nvrtc api, OpenNvrtc());
  int major = 0;
  int minor = 0;
  api.version(&major, &minor);
  return std::make_unique<NvrtcCompiler>(api, major, minor);
}

}  // namespace atunner
