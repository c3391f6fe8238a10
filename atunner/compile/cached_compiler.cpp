#include "atunner/compile/cached_compiler.h"

#include <nlohmann/json.hpp>

#include "atunner/base/dylib.h"
#include "atunner/model/json.h"

namespace atunner {
namespace {

constexpr const char* kFormat = "atunner-compile-1";

/// The text of a member, or nothing when it is not there or no text.
std::optional<std::string> TextOf(const Json& json, const char* name) {
  const auto at = json.find(name);
  return at != json.end() && at->is_string() ? std::optional(at->get<std::string>()) : std::nullopt;
}

std::optional<CompileOutcome> Load(const Path& file) {
  const auto text = ReadFile(file);
  if (!text) return std::nullopt;
  const auto json = ParseJson(*text);
  if (!json || !json->is_object() || TextOf(*json, "format") != kFormat) return std::nullopt;
  CompileOutcome outcome;
  auto error = TextOf(*json, "error");
  if (!error) return std::nullopt;
  outcome.error = *std::move(error);
  if (json->contains("module")) {
    auto module = FromJson<CompiledModule>((*json)["module"]);
    if (!module) return std::nullopt;
    module->from_cache = true;
    outcome.module = *std::move(module);
  } else if (outcome.error.empty()) {
    return std::nullopt;
  }
  return outcome;
}

}  // namespace

Digest CacheKey(const CompileRequest& request, const std::string& compiler_version) {
  std::vector<std::string> fields = {request.source.ContentDigest().ToHex(), request.arch, compiler_version};
  fields.insert(fields.end(), request.entries.begin(), request.entries.end());
  for (const std::string& folder : CudaIncludeFolders()) fields.push_back(folder);
  return DigestOf(fields);
}

Result<CompileOutcome> CachedCompiler::Compile(const CompileRequest& request) {
  const Digest key = CacheKey(request, Version());
  const std::string name = key.ToHex();
  const Path file = folder_ / name.substr(0, 2) / (name + ".json");
  // Headers of the user's own are not part of the key, so their dependents are not cached.
  const bool cacheable = request.source.include_folders.empty();
  if (cacheable) {
    if (auto known = Load(file)) return *std::move(known);
  }
  ATUNNER_TRY(CompileOutcome outcome, inner_->Compile(request));
  if (outcome.module) outcome.module->source = key;
  if (!cacheable || outcome.timed_out) return outcome;
  Json json{{"format", kFormat}, {"error", outcome.error}};
  if (outcome.module) json["module"] = ToJson(*outcome.module);
  // A cache that cannot be written (full disk, read-only home) slows down and does no other harm.
  (void)WriteFileAtomic(file, DumpJson(json));
  return outcome;
}

}  // namespace atunner
