#include "atunner/model/json/json_values.h"

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <variant>

namespace atunner {

Json JsonOfValue(const Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Value ValueFrom(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>();
}

Digest DigestFrom(const std::string& hex) {
  const bool digits = hex.size() == 32 &&
                      hex.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!digits) throw std::runtime_error("'" + hex + "' is no digest");
  Digest digest;
  std::from_chars(hex.data(), hex.data() + 16, digest.high, 16);
  std::from_chars(hex.data() + 16, hex.data() + 32, digest.low, 16);
  return digest;
}

}  // namespace atunner
