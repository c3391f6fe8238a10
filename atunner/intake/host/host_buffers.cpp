// Sizes and types of the buffers that a host function passes on.
#include <algorithm>

#include "atunner/intake/c_type.h"
#include "atunner/intake/host/host_objects.h"
#include "atunner/model/expr/expr.h"

namespace atunner {
namespace {

constexpr int kMostNested = 24;

std::unexpected<Error> Unknown(std::string_view what) {
  return Invalid("the value of '" + std::string(what) + "' is not known");
}

}  // namespace

/// Bytes between the starts of two rows of a pitched allocation.
Result<std::string> HostScope::PitchOf(TokenRange row, int depth) {
  constexpr int kPitch = 512;  // the driver rounds a row up to a multiple of this
  ATUNNER_TRY(const std::string bytes, Convert(Copy(row), depth + 1));
  return "((" + bytes + " + " + std::to_string(kPitch - 1) + ") // " + std::to_string(kPitch) +
         " * " + std::to_string(kPitch) + ")";
}

Result<std::string> HostScope::BytesOf(const std::string& buffer) {
  const TokenRange bytes = allocations_.find(buffer)->second;
  const auto rows = pitched_.find(buffer);
  if (rows == pitched_.end()) return Convert(Copy(bytes), 0);
  ATUNNER_TRY(const std::string pitch, PitchOf(bytes, 0));
  ATUNNER_TRY(const std::string count, Convert(Copy(rows->second), 0));
  return pitch + " * (" + count + ")";
}

Result<HostScope::Buffer> HostScope::BufferOf(TokenRange range) {
  Begin();
  return BufferOf(range, 0);
}

/// The buffer of `solver.u_`, `image->data()`, or of a member of the function's own object.
std::optional<HostScope::Buffer> HostScope::BufferOfMember(TokenRange range, int depth) {
  const auto found = depth < kMostNested ? MemberOf(range, {}, depth) : std::nullopt;
  if (!found) return std::nullopt;
  if (found->allocation.empty()) {
    auto buffer = found->scope->BufferOf(found->range, depth + 1);
    if (!buffer) return std::nullopt;
    if (!found->name.empty()) buffer->name = found->name;
    return *std::move(buffer);
  }
  const auto bytes = found->scope->BytesOf(found->allocation);
  if (!bytes) return std::nullopt;
  Buffer buffer{found->name.empty() ? found->allocation : found->name, *bytes, "", false};
  buffer.zeroed = zeroed_.contains(ObjectText(syntax_, range)) ||
                  found->scope->zeroed_.contains(found->allocation);
  buffer.type = found->scope->ElementType(found->allocation);
  return buffer;
}

/// The element type of an allocation's pointer.
std::string HostScope::ElementType(const std::string& pointer) const {
  if (const auto type = types_.find(pointer); type != types_.end()) return TypeNamed(type->second);
  const ClassField* field = FieldOfThis(pointer);
  std::string type = field == nullptr ? "" : std::string(syntax_.Text(field->type));
  if (const size_t star = type.find('*'); star != std::string::npos) type.resize(star);
  while (type.ends_with(' ')) type.pop_back();
  return TypeNamed(type);
}

/// The buffer of &buffer[0]. Other elements are not supported.
Result<HostScope::Buffer> HostScope::BufferFromElement(TokenRange range, int depth) {
  size_t open = range.begin;
  while (open < range.end && !syntax_.token(open).Is("[")) ++open;
  const bool last = open + 1 < range.end && MatchingClose(syntax_, open) + 1 == range.end;
  if (!last || NumberNow({open + 1, range.end - 1}) != 0) return Unknown(syntax_.Text(range));
  return BufferOf({range.begin + 1, open}, depth + 1);
}

Result<HostScope::Buffer> HostScope::BufferOf(TokenRange range, int depth) {
  if (depth > kMostNested || range.empty()) return Unknown(syntax_.Text(range));
  if (syntax_.token(range.begin).Is("&") && syntax_.token(range.end - 1).Is("]"))
    return BufferFromElement(range, depth);
  const TokenRange bare = BareObject(syntax_, range);
  if (bare.end != bare.begin + 1) {
    if (auto found = BufferOfMember(range, depth)) return *std::move(found);
  }
  if (auto found = BufferOfWords(range, depth)) return found;
  if (bare.end == bare.begin + 1) {
    if (auto found = BufferOfMember(range, depth)) return *std::move(found);
  }
  return Unknown(syntax_.Text(range));
}

/// The buffer of the first name in the range that has one.
Result<HostScope::Buffer> HostScope::BufferOfWords(TokenRange range, int depth) {
  const auto is = [&](size_t i, std::string_view text) {
    return i < range.end && syntax_.token(i).Is(text);
  };
  for (size_t i = range.begin; i < range.end; ++i) {
    const Token& token = syntax_.token(i);
    // A pointer into a buffer: the size of the rest is unknown.
    if (token.Is("+") || token.Is("-")) break;
    if (token.kind != Token::Kind::kWord) continue;
    if (i > range.begin && (syntax_.token(i - 1).Is(".") || syntax_.token(i - 1).Is("->")))
      continue;
    // The object whose member it is.
    if ((is(i + 1, ".") || is(i + 1, "->")) && !is(i + 3, "(") && !is(i + 3, "<")) continue;
    const std::string name(token.text);
    Buffer buffer{name, "", "", zeroed_.contains(name)};
    if (const auto type = types_.find(name); type != types_.end())
      buffer.type = TypeNamed(type->second);
    const bool offset = is(i + 1, "+") || is(i + 1, "-");
    // In a loop over parts of a buffer the first part begins at its start.
    if (offset && NumberNow({i + 2, range.end}) != 0) break;
    if (const auto bytes = allocations_.find(name); bytes != allocations_.end()) {
      ATUNNER_TRY(buffer.bytes, BytesOf(bytes->first));
      return buffer;
    }
    if (const auto count = containers_.find(name); count != containers_.end()) {
      const auto alias = syntax_.FindAlias(buffer.type);
      const auto type = ParseCType(alias == syntax_.aliases.end() ? buffer.type : alias->second);
      if (!type) return Unknown("the element type of " + name);
      ATUNNER_TRY(const std::string elements, Convert(Copy(count->second), 0));
      buffer.bytes = "(" + elements + ") * " + std::to_string(type->bytes());
      return buffer;
    }
    if (is(i + 1, ".") && IsTensor(name)) {  // x.data_ptr<float>()
      unknown_->clear();
      ATUNNER_TRY(buffer.elements, ElementsOfTensor(name, 0));
      return buffer;
    }
    if (auto made = AllocatedBy(i, "")) return *std::move(made);
    if (auto made = AllocatedFor(name)) return *std::move(made);
    if (const auto other = definitions_.find(name);
        other != definitions_.end() && depth < kMostNested) {
      // float* out = d_out;
      if (auto found = BufferOf(other->second, depth + 1)) return found;
    }
    if (const auto above = InCaller(name)) {
      ATUNNER_TRY(Buffer found, above->first->BufferOf(above->second, depth + 1));
      found.zeroed |= buffer.zeroed;
      return found;
    }
  }
  return Unknown(syntax_.Text(range));
}

/// The buffer that the function called at token `name` allocates for one of its parameters or, with
/// "", returns.
std::optional<HostScope::Buffer> HostScope::AllocatedBy(size_t name, const std::string& parameter) {
  auto call = CallAt(name);
  for (const size_t f :
       call ? Callees(name, call->object, call->arguments.size()) : std::vector<size_t>()) {
    if (f == function_ || level_ >= kMostLevels) continue;
    const HostScope inside = Inside(f, *call);
    if (parameter.empty()) {
      const auto result = inside.ReturnedHere();
      const auto buffer = result ? result->scope->BufferOf(result->range, 0)
                                 : Result<Buffer>(Unknown(""));
      return buffer ? std::optional(*buffer) : std::nullopt;
    }
    if (!inside.allocations_.contains(parameter)) return std::nullopt;
    const auto bytes = inside.Self()->BytesOf(parameter);
    if (!bytes) return std::nullopt;
    return Buffer{parameter, *bytes, inside.ElementType(parameter), false};
  }
  return std::nullopt;
}

/// The buffer that a function of the file allocates for a pointer whose address it gets, e.g.
/// allocate(&x, n);
std::optional<HostScope::Buffer> HostScope::AllocatedFor(const std::string& name) {
  if (function_ >= syntax_.functions.size()) return std::nullopt;
  const TokenRange body = syntax_.functions[function_].body;
  for (size_t i = body.begin; i < std::min(position_, body.end); ++i) {
    const auto function = std::ranges::find(syntax_.functions, syntax_.token(i).text,
                                            &HostFunction::name);
    const auto call = function == syntax_.functions.end() ? std::nullopt : CallAt(i);
    if (!call) continue;
    const auto parameters = SplitArguments(syntax_, function->parameters, true);
    for (size_t p = 0; p < std::min(parameters.size(), call->arguments.size()); ++p) {
      if (parameters[p].empty() || call->arguments[p].empty() ||
          !syntax_.token(call->arguments[p].end - 1).Is(name))
        continue;
      auto buffer = AllocatedBy(i, std::string(syntax_.token(parameters[p].end - 1).text));
      if (!buffer) continue;
      buffer->name = name;
      if (const auto type = types_.find(name); type != types_.end())
        buffer->type = TypeNamed(type->second);
      return buffer;
    }
  }
  return std::nullopt;
}

}  // namespace atunner
