// `operators`: operators, their attributes, and what tunes them.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "atunner/codegen/template/family.h"
#include "atunner/jobs/operators/operator_cases.h"
#include "atunner/operators/operator.h"
#include "faces/cli/output/field_paths.h"
#include "faces/cli/output/render.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {
namespace {

/// The shapes that an operator's help shows.
std::vector<std::vector<int64_t>> ShapesShown(const std::string& help) {
  const std::string flag = "--input-shape ";
  const size_t at = help.find(flag);
  return jobs::ParsedShapes(at == std::string::npos ? "" : help.substr(at + flag.size()));
}

/// Which family computes the operator as its help shows it; empty where none does.
std::string FamilyOf(const Operator& op) {
  const std::vector<std::vector<int64_t>> shapes = ShapesShown(WithFlags(op.info().shape_help));
  for (DType dtype : {DType::kBFloat16, DType::kFloat32, DType::kInt32}) {
    const auto spec = op.Instantiate({shapes, dtype, {}});
    if (!spec) continue;
    const Family* family = FamilyOf(Task::Of(*spec));
    if (family != nullptr) return std::string(family->name);
  }
  return "";
}

Json Described(const OperatorInfo& info, const std::string& family) {
  const Operator* gradient = FindOperator(info.name + "_backward");
  Json attributes = Json::array();
  for (const AttributeInfo& attribute : info.attributes)
    attributes.push_back({{"name", attribute.name},
                          {"default", ToString(attribute.fallback)},
                          {"meaning", attribute.meaning}});
  return {{"name", info.name},
          {"summary", info.summary},
          {"shape", WithFlags(info.shape_help)},
          {"attributes", attributes},
          {"family", family.empty() ? Json() : Json(family)},
          {"gradient", gradient == nullptr ? Json() : Json(FamilyOf(*gradient))}};
}

void PrintOperator(const OperatorInfo& info, const std::string& family) {
  fmt::print("{}: {}\n  {}\n  tuned by: {}\n", info.name, info.summary, WithFlags(info.shape_help),
             family.empty() ? "no family, plain kernels only" : family);
  for (const AttributeInfo& attribute : info.attributes)
    fmt::print("  --attr {}={}: {}\n", attribute.name, ToString(attribute.fallback),
               attribute.meaning);
}

void PrintFamilies(size_t operators, const std::map<std::string, int>& families) {
  fmt::print("{} operators:", operators);
  for (const auto& [family, count] : families)
    fmt::print(" {} {},", count,
               family.empty() ? "with plain kernels only" : "by the family " + family);
  fmt::print(" gradients as NAME_backward\n");
}

Result<int> Operators(const std::vector<std::string>& names, const Context& context) {
  std::vector<const Operator*> listed;
  for (const Operator* op : AllOperators()) {
    if (jobs::Wanted(*op, names)) listed.push_back(op);
  }
  if (listed.empty())
    return Invalid("no operator is called like that", "", "`atunner operators` lists all");
  Json json = Json::array();
  std::map<std::string, int> families;
  for (const Operator* op : listed) {
    const std::string family = FamilyOf(*op);
    ++families[family];
    if (context.common.json)
      json.push_back(Described(op->info(), family));
    else
      PrintOperator(op->info(), family);
  }
  if (context.common.json)
    PrintJson(json);
  else
    PrintFamilies(listed.size(), families);
  return 0;
}

}  // namespace

void AddOperators(VerbList& verbs) {
  const auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = verbs.Add("operators", "operators, their attributes, and what tunes them",
                             [names](const Context& c) { return Operators(*names, c); });
  verb->add_option("names", *names, "those whose names contain one of these; without it all");
}

}  // namespace atunner::cli
