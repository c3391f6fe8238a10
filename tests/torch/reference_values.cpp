// What operators mean, for whoever wants to compare: each line of standard input is a request, each
// line of standard output its answer. Without "inputs" the answer is the arguments' names, types
// and shapes; with them, the outputs as the judge's float64 reference computes them; without
// "operator", all operators' names.
//   {"operator": "sum", "dtype": "float32", "shapes": [[2, 3]], "attributes": {"axis": 0},
//   "inputs": {"x": [1, …]}}
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "atunner/operators/operator.h"

namespace atunner {
namespace {

using nlohmann::json;

/// JSON has no infinities and no NaN: these are "inf", "-inf" and "nan".
double NumberOf(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}
json JsonOf(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Value AttributeOf(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

Result<OperatorRequest> RequestOf(const json& line) {
  OperatorRequest request;
  const auto dtype = ParseDType(line.value("dtype", "float32"));
  if (!dtype) return Invalid("unknown dtype", "dtype");
  request.dtype = *dtype;
  request.shapes = line.at("shapes").get<std::vector<std::vector<int64_t>>>();
  const json attributes = line.value("attributes", json::object());
  for (const auto& [name, value] : attributes.items())
    request.attributes[name] = AttributeOf(value);
  return request;
}

bool IsOutput(const ArgSpec& arg) { return arg.role == Role::kOutput; }
bool IsTensor(const ArgSpec& arg) { return arg.role != Role::kScalar; }

Result<json> ArgumentsOf(const KernelSpec& spec) {
  json arguments = json::array();
  for (const ArgSpec& arg : spec.args) {
    if (!IsTensor(arg)) continue;
    ATUNNER_TRY(const TensorShape shape, ShapeOf(arg, spec, spec.dims));
    arguments.push_back({{"name", arg.name},
                         {"output", IsOutput(arg)},
                         {"dtype", Name(arg.dtype)},
                         {"shape", shape.extents}});
  }
  return json{{"arguments", arguments}};
}

Result<json> OutputsOf(const KernelSpec& spec, const json& given) {
  std::vector<std::vector<double>> inputs;
  std::vector<std::vector<double>> outputs;
  std::vector<std::string> names;
  for (const ArgSpec& arg : spec.args) {
    if (!IsTensor(arg)) continue;
    ATUNNER_TRY(const TensorShape shape, ShapeOf(arg, spec, spec.dims));
    if (IsOutput(arg)) {
      outputs.emplace_back(shape.elements);
      names.push_back(arg.name);
      continue;
    }
    std::vector<double>& input = inputs.emplace_back();
    const json values = given.value(arg.name, json::array());
    for (const json& value : values) input.push_back(NumberOf(value));
    if (static_cast<int64_t>(input.size()) != shape.elements)
      return Invalid("wrong number of elements", arg.name);
  }
  ATUNNER_RETURN_IF_ERROR(OracleOf(spec)->Reference(spec, spec.dims, inputs, outputs));
  json result = json::object();
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (double value : outputs[i]) result[names[i]].push_back(JsonOf(value));
  }
  return json{{"outputs", result}};
}

json Names() {
  json names = json::array();
  for (const Operator* op : AllOperators()) names.push_back(op->info().name);
  return json{{"operators", names}};
}

Result<json> Answer(const json& line) {
  if (!line.contains("operator")) return Names();
  const std::string name = line.at("operator");
  const Operator* op = FindOperator(name);
  if (op == nullptr) return Invalid("unknown operator", name);
  ATUNNER_TRY(const OperatorRequest request, RequestOf(line));
  ATUNNER_TRY(const KernelSpec spec, op->Instantiate(request));
  return line.contains("inputs") ? OutputsOf(spec, line.at("inputs")) : ArgumentsOf(spec);
}

}  // namespace
}  // namespace atunner

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const auto answer = request.is_discarded()
                            ? atunner::Result<nlohmann::json>(atunner::Invalid("no JSON", "line"))
                            : atunner::Answer(request);
    std::cout << (answer ? *answer : nlohmann::json{{"error", answer.error().ToString()}}) << "\n"
              << std::flush;
  }
}
