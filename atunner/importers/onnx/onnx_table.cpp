#include "atunner/importers/onnx/onnx_table.h"

#include <map>

#include "atunner/importers/onnx/onnx_builders.h"

namespace atunner::importers {
namespace {

const std::map<std::string_view, OnnxOperator>& Table() {
  using namespace onnx;  // NOLINT(google-build-using-namespace): the rows name its functions
  static const std::map<std::string_view, OnnxOperator> table = [] {
    std::map<std::string_view, OnnxOperator> made;
#define ATUNNER_ONNX(name, build, text) made.emplace(name, OnnxOperator{name, build, text});
#include "atunner/importers/onnx/onnx.def"
#undef ATUNNER_ONNX
    return made;
  }();
  return table;
}

}  // namespace

const OnnxOperator* FindOnnx(std::string_view name) {
  const auto at = Table().find(name);
  return at == Table().end() ? nullptr : &at->second;
}

std::vector<std::string_view> OnnxOperators() {
  std::vector<std::string_view> names;
  for (const auto& [name, row] : Table()) names.push_back(name);
  return names;
}

}  // namespace atunner::importers
