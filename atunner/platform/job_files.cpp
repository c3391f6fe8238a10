#include "atunner/platform/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>

namespace atunner::platform {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kEndings = {".cu", ".atg", ".json", ".pt2"};
constexpr size_t kLongestName = 120;
constexpr int kDeepest = 8;

bool IsPlainName(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || name.starts_with('.')) return false;
  return std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == '+' || c == '@' || c == '=';
  });
}

std::string NewUploadId() {
  std::random_device device;
  return fmt::format("up-{:08x}{:08x}", device(), device());
}

/// Lines joined where a backslash ends them, without spaces at their beginning.
std::vector<std::string> LogicalLines(const std::string& source) {
  std::vector<std::string> lines(1);
  for (size_t i = 0; i < source.size(); ++i) {
    const bool joined = source[i] == '\\' && i + 1 < source.size() &&
                        (source[i + 1] == '\n' || source.substr(i + 1, 2) == "\r\n");
    if (joined) {
      i += source[i + 1] == '\n' ? 1 : 2;
    } else if (source[i] == '\n') {
      lines.emplace_back();
    } else if (!lines.back().empty() || !std::isspace(static_cast<unsigned char>(source[i]))) {
      lines.back() += source[i];
    }
  }
  return lines;
}

/// What follows a directive that reads a file: `"x.h"` of `#include "x.h"`; nullopt for others.
std::optional<std::string> Included(const std::string& line) {
  size_t at = line.find_first_not_of(" \t", line.starts_with("%:") ? 2 : 1);
  const bool directive = line.starts_with('#') || line.starts_with("%:");
  if (!directive || at == std::string::npos) return std::nullopt;
  for (const std::string_view name : {"include_next", "include", "import", "embed"}) {
    if (std::string_view(line).substr(at).starts_with(name)) {
      at = line.find_first_not_of(" \t", at + name.size());
      return at == std::string::npos ? "" : line.substr(at);
    }
  }
  return std::nullopt;
}

bool StaysBeside(const std::string& operand) {
  if (operand.empty() || (operand[0] != '"' && operand[0] != '<')) return false;
  const char close = operand[0] == '"' ? '"' : '>';
  const size_t end = operand.find(close, 1);
  if (end == std::string::npos) return false;
  const std::string name = operand.substr(1, end - 1);
  return !name.starts_with('/') && name.find("..") == std::string::npos;
}

}  // namespace

bool IsSafePath(const std::string& path) {
  int depth = 0;
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (!IsPlainName(std::string_view(path).substr(begin, end - begin)) || ++depth > kDeepest)
      return false;
    begin = end + 1;
  }
  return true;
}

bool IsSafeId(const std::string& id) {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_';
  });
}

Result<Upload> Uploads::Begin(const std::string& name) {
  if (!IsPlainName(name))
    return Invalid("'" + name + "' is no plain file name", "name",
                   "use letters, digits and . - _ only, for example kernel.cu");
  if (std::ranges::none_of(kEndings, [&](std::string_view end) { return name.ends_with(end); }))
    return Invalid("no job can use a file like '" + name + "'", "name",
                   fmt::format("names end in {}", fmt::join(kEndings, ", ")));
  Upload upload{NewUploadId(), name, 0, {}};
  ATUNNER_RETURN_IF_ERROR(MakeDirectories(folder_ / upload.id));
  upload.file = folder_ / upload.id / name;
  return upload;
}

Result<Upload> Uploads::Find(const std::string& id) const {
  const auto missing = Fail(ErrorCode::kNotFound, "there is no upload '" + id + "'", "upload",
                            "upload the file with POST /api/v1/uploads");
  if (!IsSafeId(id)) return missing;
  const std::vector<StoredFile> files = FilesBelow(folder_ / id);
  if (files.size() != 1) return missing;
  return Upload{id, files[0].path, files[0].bytes, folder_ / id / files[0].path};
}

std::vector<StoredFile> FilesBelow(const Path& folder) {
  std::vector<StoredFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (fs::is_symlink(at->symlink_status(ignored)) || !at->is_regular_file(ignored)) continue;
    files.push_back(
        {fs::relative(at->path(), folder, ignored).generic_string(), at->file_size(ignored)});
  }
  std::ranges::sort(files, {}, &StoredFile::path);
  return files;
}

Status CheckIncludes(const std::string& source) {
  if (source.find("__has_include") != std::string::npos)
    return Invalid("__has_include is not allowed in an upload", "upload");
  for (const std::string& line : LogicalLines(source)) {
    const auto operand = Included(line);
    if (operand && !StaysBeside(*operand))
      return Invalid("this #include may read files of the server: " + line.substr(0, 100), "upload",
                     "include headers by plain names: \"header.h\" or <header>");
  }
  return {};
}

}  // namespace atunner::platform
