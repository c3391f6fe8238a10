#include "atunner/capture/replacement.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "atunner/capture/records.h"

namespace atunner::capture {
namespace {

constexpr int kReplacementFormat = 1;

Result<Replacement> Parse(const Json& json, const std::string& where) {
  if (const int format = json.at("format").get<int>(); format != kReplacementFormat)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("it has format {}, this program reads {}", format, kReplacementFormat),
                where);
  Replacement replacement{
      json.at("kernel").get<std::string>(),      json.at("module").get<std::string>(),
      json.at("image").get<std::string>(),       json.at("arch").get<std::string>(),
      json.at("entry").get<std::string>(),       {},
      json.value("tolerance", kDefaultTolerance)};
  for (const Json& one : json.at("launches"))
    replacement.launches.push_back(
        {ConfigurationOf(one.at("from")), ConfigurationOf(one.at("to"))});
  const Path image = replacement.image;
  if (image.empty() || image != image.filename())
    return Invalid("'" + replacement.image + "' is no file of this folder", where);
  return replacement;
}

}  // namespace

Status WriteReplacement(const Path& folder, const Replacement& replacement) {
  Json json{{"format", kReplacementFormat},       {"kernel", replacement.kernel},
            {"module", replacement.module},       {"image", replacement.image},
            {"arch", replacement.arch},           {"entry", replacement.entry},
            {"tolerance", replacement.tolerance}, {"launches", Json::array()}};
  for (const ReplacedLaunch& one : replacement.launches)
    json["launches"].push_back(
        {{"from", ConfigurationJson(one.from)}, {"to", ConfigurationJson(one.to)}});
  return WriteFileAtomic(folder / kReplacementFile, DumpJson(json, 2) + "\n");
}

Result<Replacement> ReadReplacement(const Path& folder) {
  const Path file = folder / kReplacementFile;
  if (!Exists(file))
    return Fail(ErrorCode::kNotFound, "this holds no kernel that replaces one of a program",
                folder.string(), "`atunner optimize APP.capture` makes it");
  ATUNNER_TRY(const std::string text, ReadFile(file, size_t{1} << 20));
  ATUNNER_TRY(const Json json, ParseJson(text, file.string()));
  try {
    return Parse(json, file.string());
  } catch (const Json::exception& error) {
    return Invalid(error.what(), file.string());
  }
}

}  // namespace atunner::capture
