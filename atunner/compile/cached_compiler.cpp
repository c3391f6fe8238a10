#include "atunner/compile/cached_compiler.h"

#include <nlohmann/json.hpp>

#include "atunner/base/dylib.h"
#include "atunner/compile/bounded_folder.h"
#include "atunner/compile/headers.h"
#include "atunner/compile/messages.h"
#include "atunner/compile/virtual_headers.h"
#include "atunner/model/json/json.h"

namespace atunner {
namespace {

constexpr const char* kFormat = "atunner-compile-1";

std::optional<CompileOutcome> Load(const Path& file) {
  const auto text = ReadFile(file);
  if (!text) return std::nullopt;
  const auto json = ParseJson(*text);
  if (!json || !json->is_object() || !json->contains("format") || (*json)["format"] != kFormat)
    return std::nullopt;
  auto outcome = OutcomeFromJson(*json);
  if (!outcome) return std::nullopt;
  if (outcome->module) outcome->module->from_cache = true;
  return *std::move(outcome);
}

/// The source with its leading comment lines made empty. They stay lines, so that line numbers in
/// messages do not change. A comment that continues on the next line (`\`) is left alone.
SourceUnit WithoutTitle(SourceUnit source) {
  if (source.language != Language::kCudaCpp) return source;
  size_t at = 0;
  while (source.text.compare(at, 2, "//") == 0) {
    const size_t end = source.text.find('\n', at);
    if (end == std::string::npos || source.text.find('\\', at) < end) break;
    source.text.erase(at, end - at);
    ++at;
  }
  return source;
}

Digest DigestOfKnownHeaders() {
  std::vector<std::string> fields;
  for (const auto& [name, text] : KnownHeaders()) {
    fields.push_back(name);
    fields.emplace_back(text);
  }
  return DigestOf(fields);
}

}  // namespace

std::optional<Digest> CacheKey(const CompileRequest& request, const std::string& compiler_version) {
  static const Digest known_headers = DigestOfKnownHeaders();
  const auto headers = HeaderDigest(request.source);
  if (!headers) return std::nullopt;
  std::vector<std::string> fields = {WithoutTitle(request.source).ContentDigest().ToHex(),
                                     headers->ToHex(), request.arch, compiler_version,
                                     known_headers.ToHex()};
  fields.insert(fields.end(), request.entries.begin(), request.entries.end());
  for (const std::string& folder : CudaIncludeFolders()) fields.push_back(folder);
  return DigestOf(fields);
}

/// The right to compile a key; the constructor waits while another thread holds it.
class CachedCompiler::Claim {
 public:
  Claim(CachedCompiler& cache, std::string name, const std::stop_token& stop)
      : cache_(cache), name_(std::move(name)) {
    std::unique_lock lock(cache_.mutex_);
    if (cache_.released_.wait(lock, stop, [&] { return !cache_.claimed_.contains(name_); })) {
      held_ = cache_.claimed_.insert(name_).second;
    }
  }
  ~Claim() {
    if (!held_) return;
    {
      const std::lock_guard lock(cache_.mutex_);
      cache_.claimed_.erase(name_);
    }
    cache_.released_.notify_all();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  CachedCompiler& cache_;
  std::string name_;
  bool held_ = false;  ///< false if the wait was stopped
};

Result<CompileOutcome> CachedCompiler::Compile(const CompileRequest& request,
                                               const std::stop_token& stop) {
  const std::optional<Digest> key = CacheKey(request, Version());
  if (!key) return inner_->Compile(request, stop);
  const std::string name = key->ToHex();
  const Path file = folder_ / name.substr(0, 2) / (name + ".json");
  const Claim claim(*this, name, stop);
  if (auto known = Load(file)) {
    Renew(file);  // used entries are evicted last
    return *std::move(known);
  }
  return CompileNow(request, stop, *key, file);
}

Result<CompileOutcome> CachedCompiler::CompileNow(const CompileRequest& request,
                                                  const std::stop_token& stop, const Digest& key,
                                                  const Path& file) {
  ATUNNER_TRY(CompileOutcome outcome, inner_->Compile(request, stop));
  if (outcome.module) outcome.module->source = key;
  // Time-outs and crashes may be due to a busy machine, so only other failures are kept.
  if (outcome.timed_out || outcome.crashed) return outcome;
  Json json = ToJson(outcome);
  json["format"] = kFormat;
  // A cache that cannot be written (full disk, read-only home) only makes things slower.
  (void)WriteFileAtomic(file, DumpJson(json));
  return outcome;
}

}  // namespace atunner
