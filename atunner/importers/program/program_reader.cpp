#include "atunner/importers/program/program_reader.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace atunner::importers {
namespace {

constexpr int64_t kSchema = 8;

/// The only member of a union: {"as_int": 3} is as_int and 3.
std::optional<std::pair<std::string, const ForeignJson*>> Union(const ForeignJson& json) {
  if (!json.is_object() || json.size() != 1) return std::nullopt;
  return std::pair{json.begin().key(), &json.begin().value()};
}

/// JSON has no infinities: they are strings.
std::optional<double> RealOf(const ForeignJson& json) {
  if (json.is_number()) return json.get<double>();
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  if (text == "Infinity" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::optional<std::string> NameOf(const ForeignJson& tensor) {
  const ForeignJson& name = Member(tensor, "name");
  if (!name.is_string()) return std::nullopt;
  return name.get<std::string>();
}

template <class T, class Read>
std::optional<std::vector<T>> ListOf(const ForeignJson& json, Read&& read) {
  if (!json.is_array()) return std::nullopt;
  std::vector<T> list;
  for (const ForeignJson& element : json) {
    std::optional<T> value = read(element);
    if (!value) return std::nullopt;
    list.push_back(*std::move(value));
  }
  return list;
}

std::optional<bool> BoolOf(const ForeignJson& json) {
  return json.is_boolean() ? std::optional(json.get<bool>()) : std::nullopt;
}

/// Elements are {"name": …}, {"as_tensor": {"name": …}}, or {"as_none": true}.
std::optional<std::optional<TensorRef>> OptionalTensor(const ForeignJson& json) {
  const ForeignJson& inner = Member(json, "as_tensor");
  if (auto name = NameOf(inner.is_null() ? json : inner)) return TensorRef{*std::move(name)};
  if (!Member(json, "as_none").is_null()) return std::optional<TensorRef>();
  return std::nullopt;
}

template <class T>
std::optional<Argument> AsArgument(std::optional<T> value) {
  if (!value) return std::nullopt;
  return Argument(*std::move(value));
}

std::optional<Argument> SymbolicBool(const ForeignJson& json) {
  return AsArgument(BoolOf(json.is_object() ? Member(json, "as_bool") : json));
}

std::optional<Argument> SymbolicReal(const ForeignJson& json) {
  return AsArgument(RealOf(json.is_object() ? Member(json, "as_float") : json));
}

std::optional<Argument> TypeOfNumber(const ForeignJson& json) {
  if (!json.is_number_integer()) return std::nullopt;
  return Argument(ScalarType{DTypeOfNumber(json.get<int64_t>())});
}

std::optional<Argument> TensorOf(const ForeignJson& json) {
  auto tensor = OptionalTensor(json);
  if (!tensor) return std::nullopt;
  return *tensor ? Argument(**std::move(tensor)) : Argument();
}

std::optional<Argument> TensorsOf(const ForeignJson& json) {
  return AsArgument(ListOf<std::optional<TensorRef>>(json, OptionalTensor));
}

std::optional<Argument> TextOf(const ForeignJson& json) {
  if (!json.is_string()) return std::nullopt;
  return Argument(json.get<std::string>());
}

/// The argument of a union's member; nullopt where its value has another type than its name says.
std::optional<Argument> ArgumentOf(const std::string& kind, const ForeignJson& value) {
  if (kind == "as_none") return Argument();
  if (kind == "as_tensor" || kind == "as_optional_tensor") return TensorOf(value);
  if (kind == "as_tensors" || kind == "as_optional_tensors") return TensorsOf(value);
  if (kind == "as_int" || kind == "as_sym_int") return AsArgument(SizeFromJson(value));
  if (kind == "as_ints" || kind == "as_sym_ints")
    return AsArgument(ListOf<int64_t>(value, SizeFromJson));
  if (kind == "as_float") return AsArgument(RealOf(value));
  if (kind == "as_sym_float") return SymbolicReal(value);
  if (kind == "as_floats") return AsArgument(ListOf<double>(value, RealOf));
  if (kind == "as_bool") return AsArgument(BoolOf(value));
  if (kind == "as_sym_bool") return SymbolicBool(value);
  if (kind == "as_bools") return AsArgument(ListOf<bool>(value, BoolOf));
  if (kind == "as_string") return TextOf(value);
  if (kind == "as_scalar_type") return TypeOfNumber(value);
  return Argument(Opaque{kind});
}

class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  Result<ExportedProgram> Read(const ForeignJson& json) {
    ATUNNER_RETURN_IF_ERROR(CheckSchema(Member(json, "schema_version")));
    const ForeignJson& module = Member(json, "graph_module");
    const ForeignJson& graph = Member(module, "graph");
    const ForeignJson& signature = Member(module, "signature");
    if (!Member(graph, "nodes").is_array()) return Wrong("graph_module.graph.nodes", "a list");
    ATUNNER_RETURN_IF_ERROR(ReadTensors(Member(graph, "tensor_values")));
    ATUNNER_RETURN_IF_ERROR(ReadNodes(Member(graph, "nodes")));
    ATUNNER_RETURN_IF_ERROR(ReadInputs(Member(signature, "input_specs")));
    ATUNNER_RETURN_IF_ERROR(ReadOutputs(Member(signature, "output_specs")));
    return std::move(program_);
  }

 private:
  std::unexpected<Error> Wrong(const std::string& place, const std::string& wanted) const {
    return Invalid("'" + place + "' is not " + wanted, where_,
                   "is this the JSON of a program that torch.export wrote?");
  }

  Status CheckSchema(const ForeignJson& version) {
    const ForeignJson& major = Member(version, "major");
    if (!major.is_number_integer())
      return Invalid(
          "'schema_version.major' is not a number", where_,
          "is this the JSON of a program that torch.export wrote? A file of Kernel Tuner, "
          "KTT or BAT is for `atunner tune`");
    const auto given = major.get<int64_t>();
    if (given == kSchema) return {};
    if (given == kSchema - 1) {
      program_.notes.push_back("the file has schema 7, which is read as schema 8");
      return {};
    }
    return Fail(ErrorCode::kUnsupported, fmt::format("the file has schema {}", given), where_,
                "schema 8 is read, which PyTorch 2.5 and later write; export the model again");
  }

  Status ReadTensors(const ForeignJson& json) {
    if (!json.is_object()) return Wrong("graph_module.graph.tensor_values", "an object");
    for (const auto& [name, meta] : json.items()) {
      const ForeignJson& dtype = Member(meta, "dtype");
      if (!dtype.is_number_integer()) return Wrong("tensor_values." + name + ".dtype", "a number");
      const ForeignJson& sizes = Member(meta, "sizes");
      if (!sizes.is_array()) return Wrong("tensor_values." + name + ".sizes", "a list");
      TensorMeta& tensor = program_.tensors[name];
      tensor.type.dtype = DTypeOfNumber(dtype.get<int64_t>());
      for (const ForeignJson& size : sizes) {
        const auto number = SizeFromJson(size);
        if (!number)
          return Fail(ErrorCode::kUnsupported, "the size of '" + name + "' is symbolic", where_,
                      "export the model with fixed sizes: without dynamic_shapes");
        tensor.sizes.push_back(*number);
      }
    }
    return {};
  }

  Status ReadNodes(const ForeignJson& json) {
    for (const ForeignJson& each : json) {
      const std::string place = fmt::format("nodes[{}]", program_.nodes.size());
      ProgramNode node;
      const ForeignJson& target = Member(each, "target");
      if (!target.is_string()) return Wrong(place + ".target", "text");
      node.target = target.get<std::string>();
      for (const char* prefix : {"torch.ops.", "torch._ops."}) {
        if (node.target.starts_with(prefix)) node.target.erase(0, std::string(prefix).size());
      }
      ATUNNER_RETURN_IF_ERROR(ReadArguments(Member(each, "inputs"), place, node));
      ATUNNER_RETURN_IF_ERROR(ReadResults(Member(each, "outputs"), place, node));
      program_.nodes.push_back(std::move(node));
    }
    return {};
  }

  Status ReadArguments(const ForeignJson& json, const std::string& place, ProgramNode& node) const {
    if (!json.is_array()) return Wrong(place + ".inputs", "a list");
    for (const ForeignJson& each : json) {
      const auto name = NameOf(each);
      const auto value = Union(Member(each, "arg"));
      if (!name || !value) return Wrong(place + ".inputs", "a list of named arguments");
      auto argument = ArgumentOf(value->first, *value->second);
      if (!argument)
        return Wrong(place + ".inputs." + *name, "a fixed value of the kind " + value->first);
      node.arguments.push_back({*name, *std::move(argument)});
    }
    return {};
  }

  /// A node has one tensor, several (`max.dim`), or a list of tensors (`split`) as results.
  Status ReadResults(const ForeignJson& json, const std::string& place, ProgramNode& node) const {
    if (!json.is_array()) return Wrong(place + ".outputs", "a list");
    for (const ForeignJson& each : json) {
      const auto value = Union(each);
      if (!value) return Wrong(place + ".outputs", "a list of results");
      const auto argument = ArgumentOf(value->first, *value->second);
      if (!argument) return Wrong(place + ".outputs", "a list of tensors");
      if (const auto* tensor = std::get_if<TensorRef>(&*argument))
        node.outputs.emplace_back(*tensor);
      else if (const auto* tensors = std::get_if<TensorRefs>(&*argument))
        node.outputs.insert(node.outputs.end(), tensors->begin(), tensors->end());
      else
        node.outputs.emplace_back();
    }
    return {};
  }

  Status ReadInputs(const ForeignJson& json) {
    static const std::map<std::string, std::pair<InputKind, const char*>> kinds = {
        {"user_input", {InputKind::kUser, ""}},
        {"parameter", {InputKind::kParameter, "parameter_name"}},
        {"buffer", {InputKind::kBuffer, "buffer_name"}},
        {"tensor_constant", {InputKind::kConstant, "tensor_constant_name"}}};
    if (!json.is_array()) return Wrong("signature.input_specs", "a list");
    for (const ForeignJson& each : json) {
      const auto spec = Union(each);
      if (!spec) return Wrong("signature.input_specs", "a list of inputs");
      const auto known = kinds.find(spec->first);
      if (known == kinds.end()) {
        program_.notes.push_back("an input of the kind " + spec->first + " is ignored");
        continue;
      }
      const auto [kind, field] = known->second;
      const ForeignJson& argument = Member(*spec->second, "arg");
      const ForeignJson& tensor = Member(argument, "as_tensor");
      const auto name = NameOf(tensor.is_null() ? argument : tensor);
      if (!name && kind == InputKind::kUser) {
        program_.notes.push_back("an input that is no tensor is ignored");
        continue;
      }
      const ForeignJson& qualified = Member(*spec->second, field);
      if (!name || (kind != InputKind::kUser && !qualified.is_string()))
        return Wrong("signature.input_specs", "a list of named tensors");
      program_.inputs.push_back(
          {kind, *name, kind == InputKind::kUser ? "" : qualified.get<std::string>()});
    }
    return {};
  }

  static OutputRole RoleOf(std::string_view kind) {
    if (kind == "loss_output") return OutputRole::kLoss;
    if (kind.starts_with("gradient_to_")) return OutputRole::kGradient;
    return kind.ends_with("_mutation") ? OutputRole::kUpdate : OutputRole::kResult;
  }

  Status ReadOutputs(const ForeignJson& json) {
    if (!json.is_array()) return Wrong("signature.output_specs", "a list");
    for (const ForeignJson& each : json) {
      const auto spec = Union(each);
      if (!spec) return Wrong("signature.output_specs", "a list of outputs");
      const ForeignJson& argument = Member(*spec->second, "arg");
      const ForeignJson& tensor = Member(argument, "as_tensor");
      const auto name = NameOf(tensor.is_null() ? argument : tensor);
      if (!name) {
        program_.notes.push_back("an output that is no tensor is ignored");
        continue;
      }
      std::string of;
      for (const char* field : {"parameter_name", "buffer_name", "user_input_name"}) {
        const ForeignJson& named = Member(*spec->second, field);
        if (named.is_string()) of = named.get<std::string>();
      }
      const OutputRole role = RoleOf(spec->first);
      if (role == OutputRole::kResult || role == OutputRole::kLoss) of.clear();
      program_.outputs.push_back({*name, role, std::move(of)});
    }
    return {};
  }

  std::string where_;
  ExportedProgram program_;
};

}  // namespace

std::string ProgramNode::Name() const {
  for (const auto& output : outputs) {
    if (output) return output->name;
  }
  return target;
}

std::optional<DType> DTypeOfNumber(int64_t number) {
  static const std::map<int64_t, DType> types = {
      {1, DType::kUInt8},       {2, DType::kInt8},    {3, DType::kInt16},
      {4, DType::kInt32},       {5, DType::kInt64},   {6, DType::kFloat16},
      {7, DType::kFloat32},     {8, DType::kFloat64}, {12, DType::kBool},
      {13, DType::kBFloat16},   {28, DType::kUInt16}, {29, DType::kFloat8E4M3},
      {30, DType::kFloat8E5M2}, {34, DType::kUInt32}};
  const auto at = types.find(number);
  return at == types.end() ? std::nullopt : std::optional(at->second);
}

std::optional<int64_t> SizeFromJson(const ForeignJson& json) {
  const ForeignJson& number = json.is_object() ? Member(json, "as_int") : json;
  if (!number.is_number_integer()) return std::nullopt;
  return number.get<int64_t>();
}

Result<ExportedProgram> ReadProgram(std::string_view text, const std::string& where) {
  ATUNNER_TRY(const ForeignJson json, ParseForeignJson(text, where));
  return Reader(where).Read(json);
}

}  // namespace atunner::importers
