// Uploads and artifacts in the server's data folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/files.h"

namespace atunner::platform {

/// "kernel.cu" or "size_1/kernel.cu": True for a relative path of ordinary names, at most eight
/// deep.
bool IsSafePath(const std::string& path);

/// True for a name of letters, digits and -_ alone, as ids of uploads and jobs are.
bool IsSafeId(const std::string& id);

struct Upload {
  std::string id;    ///< "up-5f0c2a91d3b84e67"
  std::string name;  ///< "kernel.cu"
  uint64_t bytes = 0;
  Path file;
};

struct StoredFile {
  std::string path;  ///< relative, with slashes
  uint64_t bytes = 0;
};

/// The folder of all uploads: one folder for each, which holds the file under its name.
class Uploads {
 public:
  explicit Uploads(Path folder) : folder_(std::move(folder)) {}
  /// Where a new upload is to be written. kInvalidInput at "name" for a name that is no plain file
  /// name, or has an ending that no job can use.
  Result<Upload> Begin(const std::string& name);
  /// kNotFound for an unknown or unfinished one.
  Result<Upload> Find(const std::string& id) const;

 private:
  Path folder_;
};

/// All files below `folder`, ordered by path; links are left out.
std::vector<StoredFile> FilesBelow(const Path& folder);

/// kInvalidInput for a source whose #include could name files outside its folder: an absolute path,
/// one with "..", or one that is made by a macro. This is no sandbox: it keeps honest mistakes and
/// simple attempts away from the server's files.
Status CheckIncludes(const std::string& source);

}  // namespace atunner::platform
