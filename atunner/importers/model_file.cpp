#include "atunner/importers/model_file.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "atunner/importers/archive/mapped_file.h"
#include "atunner/importers/archive/zip_archive.h"
#include "atunner/importers/onnx/onnx_model.h"
#include "atunner/importers/program/program_reader.h"

namespace atunner::importers {
namespace {

constexpr uint64_t kLargestJson = uint64_t{256} << 20;
constexpr const char* kOldProgram = "serialized_exported_program.json";

/// A kind of weights: its folder, and both ways in which the file that lists them is called.
struct Kept {
  const char* folder;
  const char* suffixes[2];
};
constexpr Kept kKept[] = {
    {"data/weights/", {"_weights_config.json", "_model_param_config.json"}},
    {"data/constants/", {"_constants_config.json", "_model_constants_config.json"}}};

/// Reads a file by its name from the container's root; nullopt if there is none.
using ReadText = std::function<Result<std::optional<std::string>>(const std::string& name)>;

Status ReadWeights(const std::string& model, const std::string& where, const ReadText& read,
                   const FindFile& find, ModelFile& file) {
  for (const Kept& kept : kKept) {
    for (const char* suffix : kept.suffixes) {
      const std::string name = kept.folder + model + suffix;
      ATUNNER_TRY(const auto text, read(name));
      if (!text) continue;
      file.has_weights = true;
      ATUNNER_RETURN_IF_ERROR(
          ReadWeightsConfig(*text, where + ", " + name, kept.folder, find, file.weights));
    }
  }
  return {};
}

/// PyTorch 2.5 to 2.7: flat names, and weights in pickles.
Result<ModelFile> ReadOldLayout(const ZipArchive& archive, const std::string& root) {
  ATUNNER_TRY(const std::string_view text, archive.Read(root + kOldProgram, kLargestJson));
  ModelFile file;
  ATUNNER_TRY(file.program, ReadProgram(text, archive.where() + ", " + kOldProgram));
  file.program.notes.emplace_back(
      "weights are in a pickle, which is not read: shapes and types are those of the program");
  return file;
}

/// The name of the archive's only model, or of the one that is called "model".
Result<std::string> ModelName(const ZipArchive& archive, const std::string& root) {
  const std::string folder = root + "models/";
  std::vector<std::string> names;
  for (const auto& [name, entry] : archive.entries()) {
    if (!name.starts_with(folder) || !name.ends_with(".json")) continue;
    names.push_back(name.substr(folder.size(), name.size() - folder.size() - 5));
    if (names.back() == "model") return names.back();
  }
  if (names.size() == 1) return names[0];
  return Invalid(fmt::format("the archive has {} models", names.size()), archive.where(),
                 "one model is read, or the one that is called 'model'");
}

/// PyTorch 2.8 and later: a folder of JSON and raw weights.
Result<ModelFile> ReadNewLayout(const ZipArchive& archive, const std::string& root) {
  ATUNNER_TRY(const std::string_view version, archive.Read(root + "archive_version", 64));
  if (!version.starts_with("0") || version.substr(0, version.find_last_not_of(" \n\r") + 1) != "0")
    return Fail(ErrorCode::kUnsupported, "the archive has another version than 0", archive.where());
  ATUNNER_TRY(const std::string model, ModelName(archive, root));
  const std::string name = "models/" + model + ".json";
  ATUNNER_TRY(const std::string_view text, archive.Read(root + name, kLargestJson));
  ModelFile file;
  ATUNNER_TRY(file.program, ReadProgram(text, archive.where() + ", " + name));
  const auto read = [&](const std::string& wanted) -> Result<std::optional<std::string>> {
    if (archive.Find(root + wanted) == nullptr) return std::nullopt;
    ATUNNER_TRY(const std::string_view bytes, archive.Read(root + wanted, kLargestJson));
    return std::string(bytes);
  };
  const auto find = [&](const std::string& wanted) -> std::optional<FileExtent> {
    const ZipEntry* entry = archive.Find(root + wanted);
    if (entry == nullptr) return std::nullopt;
    return FileExtent{entry->offset, entry->size};
  };
  ATUNNER_RETURN_IF_ERROR(ReadWeights(model, archive.where(), read, find, file));
  if (!file.has_weights)
    file.program.notes.emplace_back(
        "the archive has no raw weights: shapes and types are those of the program");
  return file;
}

/// The folder in which all entries are, with a slash; the folder of the entry `name`.
std::optional<std::string> RootOf(const ZipArchive& archive, const std::string& name) {
  if (archive.Find(name) != nullptr) return "";
  for (const auto& [entry, place] : archive.entries()) {
    const size_t slash = entry.find('/');
    if (slash != std::string::npos && entry.substr(slash + 1) == name)
      return entry.substr(0, slash + 1);
  }
  return std::nullopt;
}

Result<ModelFile> ReadJsonFile(const Path& path) {
  ATUNNER_TRY(const std::string text, ReadFile(path, kLargestJson));
  ModelFile file;
  ATUNNER_TRY(file.program, ReadProgram(text, path.string()));
  const Path root = path.parent_path();
  const auto read = [&](const std::string& name) -> Result<std::optional<std::string>> {
    if (!Exists(root / name)) return std::nullopt;
    ATUNNER_TRY(std::string bytes, ReadFile(root / name, kLargestJson));
    return bytes;
  };
  const auto find = [&](const std::string& name) -> std::optional<FileExtent> {
    const auto mapped = MappedFile::Open(root / name);
    if (!mapped) return std::nullopt;
    return FileExtent{0, mapped->bytes().size()};
  };
  ATUNNER_RETURN_IF_ERROR(ReadWeights(path.stem().string(), path.string(), read, find, file));
  return file;
}

}  // namespace

Result<ModelFile> ReadModelArchive(std::string_view bytes, const std::string& where) {
  ATUNNER_TRY(const ZipArchive archive, ZipArchive::Open(bytes, where));
  if (const auto root = RootOf(archive, "archive_format")) return ReadNewLayout(archive, *root);
  if (const auto root = RootOf(archive, kOldProgram)) return ReadOldLayout(archive, *root);
  return Invalid("the archive holds no exported program", where,
                 "`torch.export.save` writes one; `torch.save` and TorchScript do not");
}

Result<ModelFile> ReadModelFile(const Path& path) {
  if (path.extension() == ".json") return ReadJsonFile(path);
  ATUNNER_TRY(const MappedFile mapped, MappedFile::Open(path));
  return ReadModelArchive(mapped.bytes(), path.string());
}

bool IsModelFile(const Path& path) {
  if (path.extension() == ".pt2" || path.extension() == ".json") return true;
  if (IsOnnxFile(path)) return true;
  const auto start = ReadStart(path, 4);
  return start && IsZip(*start);
}

bool IsOnnxFile(const Path& path) {
  if (path.extension() == ".onnx") return true;
  const auto start = ReadStart(path, 4);
  return start && LooksLikeOnnx(*start);
}

}  // namespace atunner::importers
