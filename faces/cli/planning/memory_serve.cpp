#include "faces/cli/planning/memory_serve.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "atunner/base/files.h"
#include "embed/memory_python.h"
#include "faces/program/run_program.h"

namespace atunner::cli {
namespace {

constexpr char kAllocator[] = "libatunner_memory.so";

Result<Path> AllocatorFile() {
  const Path self = SelfExecutable().parent_path();
  for (const Path& folder : {self, self.parent_path() / "lib"})
    if (Exists(folder / kAllocator)) return folder / kAllocator;
  return Fail(ErrorCode::kNotFound, fmt::format("{} is not there", kAllocator), self.string(),
              "it is built with atunner and belongs beside it, or into ../lib");
}

/// The library and the Python module, for programs that call it themselves.
Result<int> WriteAllocator(const Path& folder, const Path& library) {
  ATUNNER_TRY(const std::string contents, ReadFile(library));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / kAllocator, contents));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "atunner_memory.py", embed::kMemoryPy));
  fmt::print(
      "In the program, before its first tensor on a GPU:\n"
      "    import sys; sys.path.insert(0, \"{}\")\n"
      "    from atunner_memory import serve_memory\n"
      "    memory = serve_memory()    # memory.stats() has the figures\n",
      std::filesystem::absolute(folder).lexically_normal().string());
  return 0;
}

}  // namespace

Result<int> ServeMemory(const std::string& out, const Context& context) {
  ATUNNER_TRY(const Path library, AllocatorFile());
  if (!out.empty()) return WriteAllocator(out, library);
  if (context.program.empty())
    return Invalid("no program is given", "memory serve",
                   "atunner memory serve -- python3 train.py, or --out FOLDER");
  ATUNNER_TRY(const TemporaryDirectory folder, TemporaryDirectory::Make());
  ATUNNER_RETURN_IF_ERROR(
      WriteFileAtomic(folder.path() / "sitecustomize.py", embed::kSitecustomizePy));
  ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder.path() / "atunner_memory.py", embed::kMemoryPy));
  const char* const before = std::getenv("PYTHONPATH");
  std::string path = folder.path().string();
  if (before != nullptr && *before != '\0') path += std::string(":") + before;
  ATUNNER_TRY(
      const program::Ending ending,
      program::RunBehind(kAllocator, {{"PYTHONPATH", path}, {"ATUNNER_MEMORY", library.string()}},
                         context.program, context.common.json));
  if (!ending.well()) fmt::print(stderr, "atunner: {}\n", ending.ToString());
  return ending.signal != 0 ? 1 : ending.exit_code;
}

}  // namespace atunner::cli
