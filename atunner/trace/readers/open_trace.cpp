#include "atunner/trace/readers/open_trace.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "atunner/trace/readers/byte_source.h"
#include "atunner/trace/readers/kineto_reader.h"
#include "atunner/trace/readers/nsys_reader.h"
#include "atunner/trace/readers/sqlite_table.h"

namespace atunner::trace {
namespace {

bool IsTraceName(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".json.gz") || name.ends_with(".sqlite");
}

/// Names with their numbers as numbers, so that rank2 stands before rank10.
std::vector<std::pair<std::string, uint64_t>> SortKey(const std::string& name) {
  std::vector<std::pair<std::string, uint64_t>> key;
  std::string word;
  for (size_t at = 0; at < name.size();) {
    if (std::isdigit(static_cast<unsigned char>(name[at])) == 0) {
      word += name[at++];
      continue;
    }
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), number);
    key.emplace_back(std::exchange(word, ""), number);
    at = static_cast<size_t>(end - name.data());
  }
  key.emplace_back(word, 0);
  return key;
}

}  // namespace

Result<Timeline> OpenTrace(const Path& file) {
  ATUNNER_TRY(const std::string head, ReadStart(file, 16));
  if (head.starts_with("SQLite format 3")) {
    ATUNNER_TRY(const SqliteFile database, SqliteFile::Open(file));
    return ReadNsys(database, file.string());
  }
  ATUNNER_TRY(const auto source, OpenSource(file));
  return ReadKineto(*source, file.string());
}

Result<std::vector<Path>> TracesOfFolder(const Path& folder) {
  std::vector<Path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (IsTraceName(entry.path().filename().string())) files.push_back(entry.path());
  if (error)
    return Fail(ErrorCode::kNotFound, "cannot be read: " + error.message(), folder.string());
  if (files.empty())
    return Fail(ErrorCode::kNotFound, "no trace in this folder", folder.string(),
                "traces are named *.json, *.json.gz or *.sqlite");
  std::ranges::sort(files, {}, [](const Path& path) { return SortKey(path.filename().string()); });
  return files;
}

}  // namespace atunner::trace
