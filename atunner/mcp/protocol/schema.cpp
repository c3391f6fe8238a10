#include "atunner/mcp/protocol/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/base/closest_name.h"

namespace atunner::mcp {
namespace {

constexpr size_t kMostFaults = 8;

bool IsType(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == "null" && value.is_null();
}

/// Collects what is wrong with a value.
class Checker {
 public:
  void Check(const Json& schema, const Json& value, const std::string& place) {
    if (!CheckType(schema, value, place)) return;
    CheckAlternatives(schema, value, place);
    CheckEnum(schema, value, place);
    if (value.is_object()) CheckObject(schema, value, place);
    if (value.is_array()) CheckArray(schema, value, place);
    if (value.is_string()) CheckString(schema, value, place);
    if (value.is_number()) CheckNumber(schema, value, place);
  }
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  void Add(const std::string& place, const std::string& fault) {
    if (faults_.size() < kMostFaults) faults_.push_back(place + " " + fault);
  }

  bool CheckType(const Json& schema, const Json& value, const std::string& place) {
    const auto type = schema.find("type");
    if (type == schema.end()) return true;
    const Json types = type->is_array() ? *type : Json::array({*type});
    std::string names;
    for (const Json& one : types) {
      const std::string name = one;
      if (IsType(value, name)) return true;
      names += (names.empty() ? "" : " or ") + name;
    }
    Add(place, "must be of type " + names);
    return false;
  }

  void CheckAlternatives(const Json& schema, const Json& value, const std::string& place) {
    const auto any = schema.find("anyOf");
    if (any == schema.end()) return;
    Checker first;
    for (const Json& one : *any) {
      Checker alone;
      alone.Check(one, value, place);
      if (alone.faults_.empty()) return;
      if (first.faults_.empty()) first = alone;
    }
    faults_.insert(faults_.end(), first.faults_.begin(), first.faults_.end());
  }

  void CheckEnum(const Json& schema, const Json& value, const std::string& place) {
    const auto listed = schema.find("enum");
    if (listed == schema.end() || std::ranges::find(*listed, value) != listed->end()) return;
    Add(place, "must be one of " + DumpJson(*listed));
  }

  void CheckObject(const Json& schema, const Json& value, const std::string& place) {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>()))
        Add(place + "." + name.get<std::string>(), "is missing");
    }
    const Json known = schema.value("properties", Json::object());
    const Json others = schema.value("additionalProperties", Json(true));
    for (const auto& [name, one] : value.items()) {
      const std::string inner = place + "." + name;
      if (known.contains(name)) {
        Check(known[name], one, inner);
      } else if (others.is_object()) {
        Check(others, one, inner);
      } else if (others == false) {
        Unknown(known, name, inner);
      }
    }
  }

  void Unknown(const Json& known, const std::string& name, const std::string& place) {
    std::vector<std::string> names;
    for (const auto& [key, one] : known.items()) names.push_back(key);
    const std::string near = ClosestName(name, names);
    Add(place, near.empty() ? "is no argument" : "is no argument; did you mean '" + near + "'?");
  }

  void CheckArray(const Json& schema, const Json& value, const std::string& place) {
    if (const auto least = schema.find("minItems"); least != schema.end() && value.size() < *least)
      Add(place, fmt::format("needs at least {} items", least->get<size_t>()));
    const auto most = schema.find("maxItems");
    if (most != schema.end() && value.size() > *most) {
      Add(place, fmt::format("may have at most {} items", most->get<size_t>()));
      return;
    }
    const auto items = schema.find("items");
    if (items == schema.end()) return;
    for (size_t i = 0; i < value.size(); ++i)
      Check(*items, value[i], fmt::format("{}[{}]", place, i));
  }

  void CheckString(const Json& schema, const Json& value, const std::string& place) {
    const auto most = schema.find("maxLength");
    if (most != schema.end() && value.get_ref<const std::string&>().size() > *most)
      Add(place, fmt::format("may have at most {} bytes", most->get<size_t>()));
  }

  void CheckNumber(const Json& schema, const Json& value, const std::string& place) {
    const auto least = schema.find("minimum");
    const auto most = schema.find("maximum");
    if (least != schema.end() && value < *least) Add(place, "must be at least " + DumpJson(*least));
    if (most != schema.end() && value > *most) Add(place, "must be at most " + DumpJson(*most));
  }

  std::vector<std::string> faults_;
};

}  // namespace

Status CheckSchema(const Json& schema, const Json& value, std::string_view place) {
  Checker checker;
  checker.Check(schema, value, std::string(place));
  if (checker.faults().empty()) return {};
  std::string text;
  for (const std::string& fault : checker.faults()) text += (text.empty() ? "" : "; ") + fault;
  return Invalid(text, std::string(place));
}

}  // namespace atunner::mcp
