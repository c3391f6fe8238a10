#include "atunner/model/json/json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "atunner/model/json/json_values.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/space/permutation.h"
#include "atunner/model/trial/trial.h"
#include "atunner/model/value/device_profile.h"

// Serialisers of types we do not own.
namespace nlohmann {

template <class T>
struct adl_serializer<std::optional<T>> {
  static void to_json(ordered_json& json, const std::optional<T>& value) {
    if (value) {
      json = *value;
    } else {
      json = nullptr;
    }
  }
  static void from_json(const ordered_json& json, std::optional<T>& value) {
    value = json.is_null() ? std::nullopt : std::optional<T>(json.template get<T>());
  }
};

template <>
struct adl_serializer<atunner::Value> {
  static void to_json(ordered_json& json, const atunner::Value& value) {
    const auto* real = std::get_if<double>(&value);
    // JSON has no infinity and no NaN: their names stand for them, as on the command line.
    if (real != nullptr && !std::isfinite(*real)) {
      json = atunner::ToString(value);
      return;
    }
    std::visit([&](const auto& held) { json = held; }, value);
  }
  static void from_json(const ordered_json& json, atunner::Value& value) {
    value = atunner::ValueFrom(json);
  }
};

}  // namespace nlohmann

namespace atunner {
namespace {

[[noreturn]] void Throw(const std::string& what) {
  throw nlohmann::ordered_json::other_error::create(501, what, static_cast<const Json*>(nullptr));
}

/// Enumerations travel by name.
template <class Enum, size_t N>
Enum EnumByName(const Json& json, const Enum (&all)[N]) {
  const auto text = json.get<std::string>();
  for (Enum value : all) {
    if (Name(value) == text) return value;
  }
  Throw("unknown name '" + text + "'");
}

uint64_t HexWord(const std::string& text, size_t at) {
  return std::stoull(text.substr(at, 16), nullptr, 16);
}

}  // namespace

#define ATUNNER_ENUM_JSON(Type, ...)                                                      \
  static void to_json(Json& json, const Type& value) { json = std::string(Name(value)); } \
  static void from_json(const Json& json, Type& value) {                                  \
    static constexpr Type kAll[] = {__VA_ARGS__};                                         \
    value = EnumByName(json, kAll);                                                       \
  }

static void to_json(Json& json, const DType& value) { json = std::string(Name(value)); }
static void from_json(const Json& json, DType& value) {
  const auto parsed = ParseDType(json.get<std::string>());
  if (!parsed) Throw("unknown dtype '" + json.get<std::string>() + "'");
  value = *parsed;
}
ATUNNER_ENUM_JSON(Role, Role::kInput, Role::kOutput, Role::kInOut, Role::kScalar)
ATUNNER_ENUM_JSON(Language, Language::kCudaCpp, Language::kPtx, Language::kCubin)

constexpr VerdictKind kAllVerdicts[] = {
#define ATUNNER_VERDICT(id, name) VerdictKind::id,
#include "atunner/model/trial/verdict.def"
#undef ATUNNER_VERDICT
};
static void to_json(Json& json, const VerdictKind& value) { json = std::string(Name(value)); }
static void from_json(const Json& json, VerdictKind& value) {
  value = EnumByName(json, kAllVerdicts);
}

NLOHMANN_JSON_SERIALIZE_ENUM(Fill::Kind, {{Fill::Kind::kFamilies, "families"},
                                          {Fill::Kind::kZeros, "zeros"},
                                          {Fill::Kind::kConstant, "constant"},
                                          {Fill::Kind::kIota, "iota"},
                                          {Fill::Kind::kUniform, "uniform"},
                                          {Fill::Kind::kFile, "file"},
                                          {Fill::Kind::kGenerator, "generator"},
                                          {Fill::Kind::kIndices, "indices"},
                                          {Fill::Kind::kOffsets, "offsets"},
                                          {Fill::Kind::kBlob, "blob"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Oracle::Kind, {{Oracle::Kind::kOperator, "operator"},
                                            {Oracle::Kind::kKernel, "kernel"},
                                            {Oracle::Kind::kGraph, "graph"}})
NLOHMANN_JSON_SERIALIZE_ENUM(ArgBinding::Kind, {{ArgBinding::Kind::kTensor, "tensor"},
                                                {ArgBinding::Kind::kWorkspace, "workspace"},
                                                {ArgBinding::Kind::kScalar, "scalar"},
                                                {ArgBinding::Kind::kTensorMap, "tensor_map"},
                                                {ArgBinding::Kind::kWorkspaceMap, "workspace_map"},
                                                {ArgBinding::Kind::kTexture, "texture"},
                                                {ArgBinding::Kind::kSurface, "surface"},
                                                {ArgBinding::Kind::kBytes, "bytes"}})

static void to_json(Json& json, const Digest& value) { json = value.ToHex(); }
static void from_json(const Json& json, Digest& value) {
  const auto text = json.get<std::string>();
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    Throw("'" + text + "' is no digest");
  value = {HexWord(text, 0), HexWord(text, 16)};
}

static void to_json(Json& json, const Expr& value) { json = value.text(); }
static void from_json(const Json& json, Expr& value) {
  auto parsed = Expr::Parse(json.is_string() ? json.get<std::string>() : json.dump());
  if (!parsed) Throw(parsed.error().ToString());
  value = *std::move(parsed);
}

/// Like get_to, but a number that does not fit the integer is refused: the library's conversion
/// would be undefined.
template <class T>
void ReadField(const Json& json, T& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Limits = std::numeric_limits<T>;
    const double number = json.is_number_float() ? json.get<double>() : 0;
    const bool fits = number >= static_cast<double>(Limits::min()) &&
                      number < std::ldexp(1.0, Limits::digits);
    if (!fits) Throw(json.dump() + " is out of range");
  }
  json.get_to(value);
}

/// Fields by name; a missing field keeps its default.
#define ATUNNER_WRITE_FIELD(field) json[#field] = value.field;
#define ATUNNER_READ_FIELD(field) \
  if (const auto at = json.find(#field); at != json.end()) ReadField(*at, value.field);
#define ATUNNER_FIELDS(Type, ...)                                               \
  static void to_json(Json& json, const Type& value) {                          \
    json = Json::object();                                                      \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(ATUNNER_WRITE_FIELD, __VA_ARGS__)) \
  }                                                                             \
  static void from_json(const Json& json, Type& value) {                        \
    if (!json.is_object()) Throw("an object is needed for " #Type);             \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(ATUNNER_READ_FIELD, __VA_ARGS__))  \
  }

ATUNNER_FIELDS(Fill, kind, low, high, path, digest)
ATUNNER_FIELDS(ArgSpec, name, role, dtype, shape, value, fill)
ATUNNER_FIELDS(SourceUnit, name, text, language, defines, options, include_folders)
ATUNNER_FIELDS(TensorView, dims, strides, box, swizzle_bytes)
ATUNNER_FIELDS(ParameterBytes::Pointer, at, name, offset)
static void to_json(Json& json, const ParameterBytes& value) {
  json = {{"bytes", Base64Encode(value.bytes)}, {"pointers", value.pointers}};
}
static void from_json(const Json& json, ParameterBytes& value) {
  auto bytes = Base64Decode(json.at("bytes").get<std::string>());
  if (!bytes) Throw(bytes.error().ToString());
  value.bytes = *std::move(bytes);
  json.at("pointers").get_to(value.pointers);
  for (const ParameterBytes::Pointer& pointer : value.pointers) {
    if (value.bytes.size() < sizeof(uint64_t) || pointer.at > value.bytes.size() - sizeof(uint64_t))
      Throw("a pointer lies outside of its parameter");
  }
}
/// `raw` is written for parameters of bytes only: digests of all other plans stay as they were.
static void to_json(Json& json, const ArgBinding& value) {
  json = {{"kind", value.kind},
          {"name", value.name},
          {"dtype", value.dtype},
          {"value", value.value},
          {"view", value.view}};
  if (value.kind == ArgBinding::Kind::kBytes) json["raw"] = value.raw;
}
static void from_json(const Json& json, ArgBinding& value) {
  if (!json.is_object()) Throw("an object is needed for ArgBinding");
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(ATUNNER_READ_FIELD, kind, name, dtype, value, view, raw))
}
ATUNNER_FIELDS(LaunchStep, entry, grid, block, cluster, shared_bytes, cooperative, programmatic,
               args)
ATUNNER_FIELDS(Workspace, name, bytes)
ATUNNER_FIELDS(SymbolCopy, symbol, tensor)
ATUNNER_FIELDS(LaunchPlan, workspaces, symbols, steps, parameter_names, parameter_values)
ATUNNER_FIELDS(RenderedKernel, source, plan)
ATUNNER_FIELDS(Tolerance, relative, absolute, budget_factor, allow_nondeterminism)
ATUNNER_FIELDS(Oracle, kind, operator_name, kernel, graph)
ATUNNER_FIELDS(KernelSpec, name, dims, attributes, args, oracle, tolerance, flops, bytes,
               compute_dtype, tensor_cores)
/// A permutation is written as its items, from which the orders follow. Conditions and inactive
/// values, which few parameters have, are written only where they are set.
static void to_json(Json& json, const Parameter& value) {
  json = Json{{"name", value.name}};
  if (value.items.empty())
    json["values"] = value.values;
  else
    json["items"] = value.items;
  json["meaning"] = value.meaning;
  if (value.only_if) json["only_if"] = *value.only_if;
  if (value.otherwise) json["otherwise"] = *value.otherwise;
}
static void from_json(const Json& json, Parameter& value) {
  if (!json.is_object()) Throw("an object is needed for Parameter");
  NLOHMANN_JSON_EXPAND(
      NLOHMANN_JSON_PASTE(ATUNNER_READ_FIELD, name, values, meaning, items, only_if, otherwise))
  if (value.items.empty()) return;
  auto orders = OrdersOf(value.items);
  if (!orders) Throw(orders.error().ToString());
  value.values = *std::move(orders);
}
ATUNNER_FIELDS(Constraint, condition, reason)
ATUNNER_FIELDS(ParameterSpace, parameters, constraints)
ATUNNER_FIELDS(KernelResources, entry, mangled, registers, static_shared_bytes, local_bytes,
               spill_store_bytes, spill_load_bytes, constant_bytes, max_threads)
ATUNNER_FIELDS(CheckRecord, check, family, dims, passed, error, bound, honest, detail)
ATUNNER_FIELDS(Coverage, executed, compared)
ATUNNER_FIELDS(Verdict, kind, reason, checks, coverage)
ATUNNER_FIELDS(Measurement, median_ns, low_ns, high_ns, minimum_ns, samples_ns, warmups,
               stop_reason, flush, device, driver, sm_mhz, memory_mhz, power_watts, energy_joules,
               throttle, seed)
ATUNNER_FIELDS(Estimate::Part, name, ns, overlapped)
ATUNNER_FIELDS(Estimate, time_ns, low_ns, high_ns, limiter, parts, device, blocks_executed,
               blocks_total, dram_bytes, flops, occupancy, energy_joules)
ATUNNER_FIELDS(Comparison, ratio, low, high, pairs)
ATUNNER_FIELDS(Budget, trials, seconds)
static void to_json(Json& json, const Configuration& value) { json = value.values; }
static void from_json(const Json& json, Configuration& value) {
  value.values = json.get<std::vector<Value>>();
}

/// The strategies' names had no "search:" before them in what schema 1 wrote.
static std::string ProposerOf(const std::string& stored) {
  const bool is_whole = stored.empty() || stored == "default" || stored == "user" ||
                        stored.find(':') != std::string::npos;
  return is_whole ? stored : "search:" + stored;
}

/// {"candidate": id, "kind", "configuration" or "kernel", "proposer", "reason", "parent"}
static void to_json(Json& json, const Candidate& value) {
  json = Json{{"candidate", value.id}, {"kind", Name(value.kind())}};
  if (const RenderedKernel* kernel = value.kernel())
    json["kernel"] = *kernel;
  else
    json["configuration"] = *value.configuration();
  json["proposer"] = value.provenance.proposer;
  json["reason"] = value.provenance.reason;
  json["parent"] = value.provenance.parent;
}
/// Schema 1 knew configurations alone and no id: that is left zero.
static void from_json(const Json& json, Candidate& value) {
  if (!json.is_object()) Throw("an object is needed for Candidate");
  const std::string kind = json.value("kind", "configuration");
  if (const auto id = json.find("candidate"); id != json.end()) id->get_to(value.id);
  value.provenance.proposer = ProposerOf(json.value("proposer", ""));
  value.provenance.reason = json.value("reason", "");
  if (const auto parent = json.find("parent"); parent != json.end())
    parent->get_to(value.provenance.parent);
  if (kind == Name(CandidateKind::kConfiguration))
    value.what = json.value("configuration", Json::array()).get<Configuration>();
  else if (kind == Name(CandidateKind::kSource))
    value.what = SourceCandidate{json.at("kernel").get<RenderedKernel>()};
  else if (kind == Name(CandidateKind::kPtx))
    value.what = PtxCandidate{json.at("kernel").get<RenderedKernel>()};
  else
    Throw("unknown kind of candidate '" + kind + "'");
}

/// The fields of the candidate stand beside those of the trial.
static void to_json(Json& json, const Trial& value) {
  json = value.candidate;
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(
      ATUNNER_WRITE_FIELD, number, verdict, measurement, estimate, resources, binary, same_as,
      memory_bytes, compile_seconds, judge_seconds, verify_seconds, timing_seconds, note))
}
static void from_json(const Json& json, Trial& value) {
  json.get_to(value.candidate);
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(
      ATUNNER_READ_FIELD, number, verdict, measurement, estimate, resources, binary, same_as,
      memory_bytes, compile_seconds, judge_seconds, verify_seconds, timing_seconds, note))
}
ATUNNER_FIELDS(Baseline, name, verdict, measurement, estimate, comparison, note)

static void to_json(Json& json, const DeviceProfile& value) {
#define ATUNNER_PROFILE_FIELD(type, field, unit, meaning) json[#field] = value.field;
#include "atunner/model/value/device_profile.def"
#undef ATUNNER_PROFILE_FIELD
}
static void from_json(const Json& json, DeviceProfile& value) {
#define ATUNNER_PROFILE_FIELD(type, field, unit, meaning) \
  if (json.contains(#field)) value.field = json.at(#field).get<type>();
#include "atunner/model/value/device_profile.def"
#undef ATUNNER_PROFILE_FIELD
}

static void to_json(Json& json, const CompiledModule& value) {
  json = Json{{"source", value.source},
              {"binary", value.binary},
              {"arch", value.arch},
              {"compiler", value.compiler},
              {"ptx", value.ptx},
              {"cubin", Base64Encode(value.cubin)},
              {"kernels", value.kernels},
              {"log", value.log},
              {"compile_seconds", value.compile_seconds},
              {"from_cache", value.from_cache}};
}
static void from_json(const Json& json, CompiledModule& value) {
  value.source = json.at("source").get<Digest>();
  value.binary = json.at("binary").get<Digest>();
  value.arch = json.at("arch").get<std::string>();
  value.compiler = json.at("compiler").get<std::string>();
  value.ptx = json.at("ptx").get<std::string>();
  auto cubin = Base64Decode(json.at("cubin").get<std::string>());
  if (!cubin) Throw(cubin.error().what);
  value.cubin = *std::move(cubin);
  value.kernels = json.at("kernels").get<std::vector<KernelResources>>();
  value.log = json.at("log").get<std::string>();
  value.compile_seconds = json.at("compile_seconds").get<double>();
  value.from_cache = json.at("from_cache").get<bool>();
}

#define ATUNNER_DEFINE_JSON(Type)                                            \
  Json ToJson(const Type& value) {                                           \
    Json json;                                                               \
    to_json(json, value);                                                    \
    return json;                                                             \
  }                                                                          \
  template <>                                                                \
  Result<Type> FromJson<Type>(const Json& json) {                            \
    try {                                                                    \
      Type value{};                                                          \
      from_json(json, value);                                                \
      return value;                                                          \
    } catch (const std::exception& error) {                                  \
      return Invalid(std::string("not a valid " #Type ": ") + error.what()); \
    }                                                                        \
  }
ATUNNER_JSON_TYPES(ATUNNER_DEFINE_JSON)
#undef ATUNNER_DEFINE_JSON

Digest KernelSpec::ContentDigest() const { return DigestOf(DumpJson(ToJson(*this))); }

Digest RenderedKernel::ContentDigest() const {
  const std::vector<std::string> fields = {source.ContentDigest().ToHex(), DumpJson(ToJson(plan))};
  return DigestOf(fields);
}

Result<Json> ParseJson(std::string_view text, std::string_view where) {
  int depth = 0;
  bool in_string = false;
  // The library's destructor recurses, so the depth is checked before anything is parsed.
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 256) return Invalid("nested more than 256 levels deep", std::string(where));
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  try {
    return Json::parse(text);
  } catch (const std::exception& error) {
    return Invalid(std::string("malformed JSON: ") + error.what(), std::string(where));
  }
}

std::string DumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string Base64Encode(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << 16;
    if (i + 1 < bytes.size())
      group |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + 1])) << 8;
    if (i + 2 < bytes.size()) group |= static_cast<unsigned char>(bytes[i + 2]);
    text += kDigits[group >> 18];
    text += kDigits[(group >> 12) & 63];
    text += i + 1 < bytes.size() ? kDigits[(group >> 6) & 63] : '=';
    text += i + 2 < bytes.size() ? kDigits[group & 63] : '=';
  }
  return text;
}

Result<std::string> Base64Decode(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  if (text.size() % 4 != 0) return Invalid("base64 text has a length that is no multiple of 4");
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const int pad = (text[i + 2] == '=') + (text[i + 3] == '=');
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const bool is_pad = static_cast<int>(k) >= 4 - pad && i + 4 == text.size();
      const int value = is_pad ? 0 : digit(text[i + k]);
      if (value < 0) return Invalid("character that is not base64 at " + std::to_string(i + k));
      group = (group << 6) | static_cast<uint32_t>(value);
    }
    bytes += static_cast<char>(group >> 16);
    if (pad < 2) bytes += static_cast<char>((group >> 8) & 255);
    if (pad < 1) bytes += static_cast<char>(group & 255);
  }
  return bytes;
}

}  // namespace atunner
