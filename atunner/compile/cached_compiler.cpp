#include "atunner/compile/cached_compiler.h"

#include <nlohmann/json.hpp>

#include "atunner/base/dylib.h"
#include "atunner/compile/headers.h"
#include "atunner/compile/messages.h"
#include "atunner/model/json.h"

namespace atunner {
namespace {

constexpr const char* kFormat = "atunner-compile-1";

std::optional<CompileOutcome> Load(const Path& file) {
  const auto text = ReadFile(file);
  if (!text) return std::nullopt;
  const auto json = ParseJson(*text);
  if (!json || !json->is_object() || !json->contains("format") || (*json)["format"] != kFormat) return std::nullopt;
  auto outcome = OutcomeFromJson(*json);
  if (!outcome) return std::nullopt;
  if (outcome->module) outcome->module->from_cache = true;
  return *std::move(outcome);
}

}  // namespace

std::optional<Digest> CacheKey(const CompileRequest& request, const std::string& compiler_version) {
  const auto headers = HeaderDigest(request.source);
  if (!headers) return std::nullopt;
  std::vector<std::string> fields = {request.source.ContentDigest().ToHex(), headers->ToHex(), request.arch,
                                     compiler_version};
  fields.insert(fields.end(), request.entries.begin(), request.entries.end());
  for (const std::string& folder : CudaIncludeFolders()) fields.push_back(folder);
  return DigestOf(fields);
}

Result<CompileOutcome> CachedCompiler::Compile(const CompileRequest& request, const std::stop_token& stop) {
  const std::optional<Digest> key = CacheKey(request, Version());
  if (!key) return inner_->Compile(request, stop);
  const std::string name = key->ToHex();
  const Path file = folder_ / name.substr(0, 2) / (name + ".json");
  if (auto known = Load(file)) return *std::move(known);
  ATUNNER_TRY(CompileOutcome outcome, inner_->Compile(request, stop));
  if (outcome.module) outcome.module->source = *key;
  // A busy machine may be to blame for a time-out or a death; the source is for the rest.
  if (outcome.timed_out || outcome.crashed) return outcome;
  Json json = ToJson(outcome);
  json["format"] = kFormat;
  // A cache that cannot be written (full disk, read-only home) slows down and does no other harm.
  (void)WriteFileAtomic(file, DumpJson(json));
  return outcome;
}

}  // namespace atunner
