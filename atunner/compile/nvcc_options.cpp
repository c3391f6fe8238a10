#include "atunner/compile/nvcc_options.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>

#include "embed/program_headers.h"

namespace atunner {
namespace {

constexpr size_t kLargestSource = size_t{4} << 20;

bool Contains(const std::vector<std::string>& options, const std::string& option) {
  return std::ranges::find(options, option) != options.end();
}

/// The header that nvcc or the host's compiler did not find; "" if they found all.
std::string MissingHeader(const std::string& messages) {
  static const std::regex host("fatal error: ([^ :]+): No such file");
  static const std::regex device("cannot open source file \"([^\"]+)\"");
  std::smatch found;
  if (std::regex_search(messages, found, host) || std::regex_search(messages, found, device))
    return found[1];
  return "";
}

/// The folder around the source in which "sub/name.h" lies: in its folders above, or in a folder
/// beside one of these, e.g. ../common. The system's temporary folder is not searched: there
/// anybody may have put a header.
std::optional<Path> FolderWith(const Path& source, const std::string& header) {
  constexpr int kLevels = 4;
  std::error_code none;
  const Path shared = std::filesystem::temp_directory_path(none);
  Path above = std::filesystem::absolute(source).parent_path();
  for (int level = 0; level < kLevels && above != above.root_path() && above != shared; ++level) {
    if (Exists(above / header)) return above;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(above, unreadable)) {
      std::error_code ignored;
      if (!entry.is_directory(ignored)) continue;
      for (const Path& folder : {entry.path(), entry.path() / "include", entry.path() / "inc"}) {
        if (Exists(folder / header)) return folder;
      }
    }
    above = above.parent_path();
  }
  return std::nullopt;
}

/// Our own text of a header that programs take from elsewhere; "" if there is none.
std::string_view KnownHeader(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> known = {{
      {"helper_cuda.h", embed::kHelperCudaH},
      {"helper_functions.h", embed::kHelperFunctionsH},
      {"helper_image.h", embed::kHelperImageH},
      {"helper_string.h", embed::kHelperStringH},
      {"helper_timer.h", embed::kHelperTimerH},
  }};
  const std::string base = Path(name).filename().string();
  const auto at = std::ranges::find(known, base, &decltype(known)::value_type::first);
  return at == known.end() ? "" : at->second;
}

/// Writes our headers; `missing` may have a folder before its name.
Status WriteHeaders(const Path& folder, const std::string& missing) {
  for (const char* name : {"helper_cuda.h", "helper_functions.h", "helper_image.h",
                           "helper_string.h", "helper_timer.h"})
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / name, std::string(KnownHeader(name))));
  if (Path(missing).has_parent_path() && !missing.contains(".."))
    return WriteFileAtomic(folder / missing, std::string(KnownHeader(missing)));
  return {};
}

std::optional<NvccRemedy> ForHeader(const std::string& header, const Path& source,
                                    const std::vector<std::string>& options, const Path& headers) {
  if (const auto folder = FolderWith(source, header)) {
    const std::string option = "-I" + folder->string();
    if (Contains(options, option)) return std::nullopt;
    return NvccRemedy{{option}, {}, folder->string() + " has " + header};
  }
  const std::string option = "-I" + headers.string();
  if (KnownHeader(header).empty() || Contains(options, option)) return std::nullopt;
  if (!WriteHeaders(headers, header)) return std::nullopt;
  return NvccRemedy{{option}, {}, header + " of CUDA's samples is replaced by our own"};
}

bool IsSource(const Path& file) {
  constexpr std::array<std::string_view, 5> kinds = {".cu", ".cpp", ".cc", ".cxx", ".c"};
  return std::ranges::find(kinds, file.extension().string()) != kinds.end();
}

/// The other sources of the folder, without other programs and files that are included.
std::vector<Path> SourcesBeside(const Path& source) {
  constexpr size_t kMost = 40;
  static const std::regex main("\\bmain\\s*\\(");
  const Path file = std::filesystem::absolute(source);
  std::vector<Path> sources;
  std::string texts = ReadFile(file, kLargestSource).value_or("");
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), unreadable)) {
    if (!IsSource(entry.path()) || entry.path() == file) continue;
    const std::string text = ReadFile(entry.path(), kLargestSource).value_or("");
    texts += text;
    if (!std::regex_search(text, main)) sources.push_back(entry.path());
  }
  std::erase_if(sources, [&](const Path& one) {
    return texts.contains(one.filename().string() + "\"") ||
           texts.contains(one.filename().string() + ">");
  });
  std::ranges::sort(sources);
  if (sources.size() > kMost) sources.clear();
  return sources;
}

/// Flags for which nvcc itself asks, and what stands for things that newer CUDA lacks.
std::vector<std::string> FlagsFor(const std::string& messages, const Path& headers) {
  std::vector<std::string> flags;
  if (messages.contains("extended-lambda")) flags.push_back("--extended-lambda");
  if (messages.contains("expt-relaxed-constexpr")) flags.push_back("--expt-relaxed-constexpr");
  if (messages.contains("separate compilation") ||
      messages.contains("Unresolved extern function") ||
      messages.contains("Unresolved extern variable"))
    flags.push_back("-rdc=true");
  // Programs of older Makefiles name C++11 or 14. Of several -std nvcc takes the last.
  if (messages.contains("requires at least C++17")) flags.push_back("-std=c++17");
  static const std::regex removed(
      "identifier \"(cudaThread[A-Za-z]+|__shfl(_up|_down|_xor)?|__any|__all|__ballot)\" is "
      "undefined|has no member \"(clockRate|memoryClockRate|deviceOverlap|computeMode|"
      "kernelExecTimeoutEnabled)\"");
  if (std::regex_search(messages, removed)) {
    const Path older = headers / "older_cuda.h";
    if (WriteFileAtomic(older, std::string(embed::kOlderCudaH)))
      flags.push_back("-include=" + older.string());
  }
  return flags;
}

}  // namespace

std::vector<std::string> OptionsForSource(const std::string& text) {
  std::vector<std::string> options;
  const auto add = [&](const char* part, const char* option) {
    if (text.contains(part) && !Contains(options, option)) options.emplace_back(option);
  };
#define ATUNNER_NVCC_OPTION(part, option) add(part, option);
#include "atunner/compile/nvcc_option.def"
#undef ATUNNER_NVCC_OPTION
  return options;
}

std::optional<NvccRemedy> FindNvccRemedy(const std::string& messages, const Path& source,
                                         const std::vector<std::string>& options,
                                         const Path& headers) {
  if (const std::string header = MissingHeader(messages); !header.empty())
    return ForHeader(header, source, options, headers);
  NvccRemedy remedy;
  for (const std::string& flag : FlagsFor(messages, headers)) {
    if (Contains(options, flag)) continue;
    remedy.options.push_back(flag);
    remedy.reason += (remedy.reason.empty() ? "nvcc asks for " : ", ") + flag;
  }
  if (messages.contains("undefined reference") || messages.contains("Unresolved extern") ||
      messages.contains("Undefined reference")) {
    remedy.sources = SourcesBeside(source);
    if (!remedy.sources.empty()) remedy.reason = "it uses functions of the sources beside it";
  }
  if (remedy.options.empty() && remedy.sources.empty()) return std::nullopt;
  return remedy;
}

}  // namespace atunner
