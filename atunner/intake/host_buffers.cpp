// How large the buffers are that a function of the host hands on, and of what type.
#include <algorithm>

#include "atunner/intake/c_type.h"
#include "atunner/intake/host_scope.h"
#include "atunner/model/expr.h"

namespace atunner {
namespace {

constexpr int kMostNested = 24;

std::unexpected<Error> Unknown(std::string_view what) {
  return Invalid("the value of '" + std::string(what) + "' is not known");
}

}  // namespace

/// Bytes from one row of a pitched allocation to the next.
Result<std::string> HostScope::PitchOf(TokenRange row, int depth) {
  constexpr int kPitch = 512;  // what the driver rounds up to
  ATUNNER_TRY(const std::string bytes, Convert(Copy(row), depth + 1));
  return "((" + bytes + " + " + std::to_string(kPitch - 1) + ") // " + std::to_string(kPitch) + " * " +
         std::to_string(kPitch) + ")";
}

Result<std::string> HostScope::BytesOf(const std::string& buffer) {
  const TokenRange bytes = allocations_.find(buffer)->second;
  const auto rows = pitched_.find(buffer);
  if (rows == pitched_.end()) return Convert(Copy(bytes), 0);
  ATUNNER_TRY(const std::string pitch, PitchOf(bytes, 0));
  ATUNNER_TRY(const std::string count, Convert(Copy(rows->second), 0));
  return pitch + " * (" + count + ")";
}

Result<HostScope::Buffer> HostScope::BufferOf(TokenRange range) { return BufferOf(range, 0); }

Result<HostScope::Buffer> HostScope::BufferOf(TokenRange range, int depth) {
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax_.token(i);
    if (token.Is("+") || token.Is("-")) break;  // a pointer into a buffer: how much is left of it is not known
    if (token.kind != Token::Kind::kWord) continue;
    const std::string name(token.text);
    Buffer buffer{name, "", "", zeroed_.contains(name)};
    if (const auto type = types_.find(name); type != types_.end()) buffer.type = TypeNamed(type->second);
    const bool offset = i + 1 < range.end && (syntax_.token(i + 1).Is("+") || syntax_.token(i + 1).Is("-"));
    // In a loop over parts of a buffer the first begins with it.
    if (offset && NumberNow({i + 2, range.end}) != 0) break;
    if (const auto bytes = allocations_.find(name); bytes != allocations_.end()) {
      ATUNNER_TRY(buffer.bytes, BytesOf(bytes->first));
      return buffer;
    }
    if (const auto count = containers_.find(name); count != containers_.end()) {
      const auto type = ParseCType(buffer.type);
      if (!type) return Unknown("the element type of " + name);
      ATUNNER_TRY(const std::string elements, Convert(Copy(count->second), 0));
      buffer.bytes = "(" + elements + ") * " + std::to_string(type->bytes());
      return buffer;
    }
    if (auto made = AllocatedBy(i, "")) return *std::move(made);
    if (auto made = AllocatedFor(name)) return *std::move(made);
    if (const auto other = definitions_.find(name); other != definitions_.end() && depth < kMostNested) {
      // float* out = d_out;
      if (auto found = BufferOf(other->second, depth + 1)) return found;
    }
    if (const auto above = InCaller(name)) {
      ATUNNER_TRY(Buffer found, above->first->BufferOf(above->second));
      found.zeroed |= buffer.zeroed;
      return found;
    }
  }
  return Unknown(syntax_.Text(range));
}

/// What the function called at a token allocates: for one of its parameters, or with "" for what it returns.
std::optional<HostScope::Buffer> HostScope::AllocatedBy(size_t name, const std::string& parameter) {
  auto call = CallAt(name);
  for (size_t f = 0; call && f < syntax_.functions.size(); ++f) {
    const HostFunction& function = syntax_.functions[f];
    if (f == function_ || !syntax_.token(name).Is(function.name)) continue;
    HostScope inside(*this, f, function.body.end, level_ + 1);
    inside.pin_ = std::move(call);
    std::string made = parameter;
    for (size_t i = function.body.begin; made.empty() && i + 1 < function.body.end; ++i) {
      const std::string after(syntax_.token(i + 1).text);
      if (syntax_.token(i).Is("return") && inside.allocations_.contains(after)) made = after;
    }
    if (!inside.allocations_.contains(made)) return std::nullopt;
    const auto bytes = inside.BytesOf(made);
    if (!bytes) return std::nullopt;
    const auto type = inside.types_.find(made);
    return Buffer{made, *bytes, type == inside.types_.end() ? "" : inside.TypeNamed(type->second), false};
  }
  return std::nullopt;
}

/// By a function of the file that was given the pointer's address: allocate(&x, n);
std::optional<HostScope::Buffer> HostScope::AllocatedFor(const std::string& name) {
  if (function_ >= syntax_.functions.size()) return std::nullopt;
  const TokenRange body = syntax_.functions[function_].body;
  for (size_t i = body.begin; i < std::min(position_, body.end); ++i) {
    const auto function = std::ranges::find(syntax_.functions, syntax_.token(i).text, &HostFunction::name);
    const auto call = function == syntax_.functions.end() ? std::nullopt : CallAt(i);
    if (!call) continue;
    const auto parameters = SplitArguments(syntax_, function->parameters, true);
    for (size_t p = 0; p < std::min(parameters.size(), call->arguments.size()); ++p) {
      if (parameters[p].empty() || call->arguments[p].empty() || !syntax_.token(call->arguments[p].end - 1).Is(name))
        continue;
      auto buffer = AllocatedBy(i, std::string(syntax_.token(parameters[p].end - 1).text));
      if (!buffer) continue;
      buffer->name = name;
      if (const auto type = types_.find(name); type != types_.end()) buffer->type = TypeNamed(type->second);
      return buffer;
    }
  }
  return std::nullopt;
}

}  // namespace atunner
