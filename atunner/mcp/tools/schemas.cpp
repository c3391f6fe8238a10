#include <nlohmann/json.hpp>
#include <utility>

#include "atunner/mcp/tools/tools.h"

namespace atunner::mcp {
namespace {

/// A kernel of a problem: the problem's own, or a source of the client's. There is no key for
/// tolerance, sizes, inputs or baseline: those are the problem's.
constexpr const char* kKernelProperties = R"json({
  "problem": {"type": "string", "maxLength": 200,
    "description": "id of a problem, from describe_problem"},
  "source": {"type": "string", "maxLength": 1000000,
    "description": "CUDA C++ device code of your own kernel. Without it the problem's own kernel is meant. For a problem that is a .cu file: the whole edited file, without launch"},
  "launch": {"type": "array", "minItems": 1, "maxItems": 16,
    "description": "launches of the source, in order; describe_problem shows those of the plain kernel",
    "items": {"type": "object", "additionalProperties": false,
      "required": ["kernel", "grid", "block", "arguments"],
      "properties": {
        "kernel": {"type": "string", "maxLength": 500,
          "description": "name of the __global__ function, or a template instance: name<4, float>"},
        "grid": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": ["integer", "string"], "maxLength": 500},
          "description": "blocks: numbers, or expressions over sizes and parameters: \"(n + BLOCK - 1) // BLOCK\""},
        "block": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": ["integer", "string"], "maxLength": 500},
          "description": "threads of a block"},
        "cluster": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": ["integer", "string"], "maxLength": 500}},
        "shared_bytes": {"type": ["integer", "string"], "maxLength": 500,
          "description": "dynamic shared memory"},
        "cooperative": {"type": "boolean"},
        "arguments": {"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 500},
          "description": "in the order of the kernel's parameters: names of the problem's arguments or of workspaces, or scalars as \"rows: int32\""}}}},
  "workspaces": {"type": "array", "maxItems": 16,
    "description": "scratch memory, undefined at the first launch",
    "items": {"type": "object", "additionalProperties": false, "required": ["name", "bytes"],
      "properties": {"name": {"type": "string", "maxLength": 100}, "bytes": {"type": ["integer", "string"], "maxLength": 500}}}},
  "parameters": {"type": "object",
    "description": "macros of the source to tune, each with its values; the first is the default: {\"BLOCK\": [128, 256]}",
    "additionalProperties": {"type": "array", "minItems": 1, "maxItems": 64, "items": {"type": ["integer", "number", "string"], "maxLength": 100}}},
  "constraints": {"type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": 500},
    "description": "conditions on parameters: \"BLOCK * TILE <= 1024\""},
  "configuration": {"type": "object",
    "description": "values of parameters; the others keep their defaults",
    "additionalProperties": {"type": ["integer", "number", "string", "boolean"], "maxLength": 200}}
})json";

/// Texts that are part of the program are right.
Json Parsed(const char* text) { return ParseJson(text, "schema").value(); }

}  // namespace

Json ObjectSchema(const char* properties, const std::vector<std::string>& required) {
  Json schema{
      {"type", "object"}, {"properties", Parsed(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

Json KernelSchema(const char* more) {
  Json schema = ObjectSchema(kKernelProperties, {"problem"});
  schema["properties"].update(Parsed(more));
  return schema;
}

}  // namespace atunner::mcp
