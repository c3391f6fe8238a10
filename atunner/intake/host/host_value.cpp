#include "atunner/intake/host/host_value.h"

#include <utility>

#include "atunner/model/expr/expr.h"

namespace atunner {

void Missing::Add(const Missing& other) {
  names.insert(other.names.begin(), other.names.end());
  nameless |= other.nameless || other.names.empty();
}

HostValue HostValue::Number(std::string text, bool real, bool plain) {
  HostValue value;
  value.kind = Kind::kNumber;
  value.text = std::move(text);
  value.real = real;
  value.plain = plain;
  return value;
}

HostValue HostValue::Unknown(std::string name) {
  HostValue value;
  value.missing.nameless = name.empty();
  if (!name.empty()) value.missing.names.insert(std::move(name));
  return value;
}

HostValue HostValue::Extents(std::vector<HostValue> given) {
  HostValue value;
  value.kind = Kind::kExtents;
  value.items = std::move(given);
  value.items.resize(3, Number("1"));
  return value;
}

HostValue HostValue::Of(std::shared_ptr<HostBuffer> buffer) {
  HostValue value;
  value.kind = Kind::kBuffer;
  value.type = buffer->type;
  value.buffer = std::move(buffer);
  return value;
}

std::optional<Value> NumberNow(const HostValue& value, const Leaves& leaves) {
  if (!value.Is(HostValue::Kind::kNumber)) return std::nullopt;
  const auto expr = Expr::Parse(value.text);
  if (!expr) return std::nullopt;
  Dims dims;
  for (const std::string& name : expr->Names()) {
    if (const auto leaf = leaves.find(name); leaf != leaves.end()) dims[name] = leaf->second.value;
  }
  const auto now = expr->Evaluate(Bindings(dims));
  return now ? std::optional(*now) : std::nullopt;
}

std::optional<bool> TruthNow(const HostValue& value, const Leaves& leaves) {
  if (value.Is(HostValue::Kind::kBuffer) || value.Is(HostValue::Kind::kAddress)) return true;
  const auto now = NumberNow(value, leaves);
  return now ? std::optional(ToDouble(*now) != 0) : std::nullopt;
}

}  // namespace atunner
