// Numbers of elements of the PyTorch tensors that a host function passes on.
#include <algorithm>

#include "atunner/intake/host/host_objects.h"

namespace atunner {
namespace {

constexpr int kMostNested = 8;

std::unexpected<Error> Unknown(std::string_view what) {
  return Invalid("the value of '" + std::string(what) + "' is not known");
}

/// A variable that holds a size of a tensor: `x.size(1)`, `x.numel()` or `x.numel() / width`.
struct Extent {
  std::string variable;
  bool whole = false;  ///< numel() instead of size(axis)
  int64_t axis = 0;
  TokenRange divisor;  ///< the divisor of numel(); may be empty
};

class Uses {
 public:
  Uses(const CudaSyntax& syntax, std::string_view tensor) : syntax_(syntax), tensor_(tensor) {}

  std::optional<Extent> Of(const std::string& variable, TokenRange value) const {
    value = WithoutCasts(value);
    const size_t at = value.begin;
    if (!Is(at, tensor_) || !(Is(at + 1, ".") || Is(at + 1, "->")) || !Is(at + 3, "("))
      return std::nullopt;
    const size_t close = MatchingClose(syntax_, at + 3);
    Extent extent{variable, Is(at + 2, "numel"), 0, {}};
    if (extent.whole && Is(close + 1, "/") && close + 2 < value.end) {
      extent.divisor = {close + 2, value.end};
      return extent;
    }
    if (close + 1 != value.end || (!extent.whole && !Is(at + 2, "size"))) return std::nullopt;
    if (extent.whole) return extent;
    const bool negative = Is(at + 4, "-");
    const std::string_view digits = syntax_.token(negative ? at + 5 : at + 4).text;
    if (digits.size() != 1 || digits[0] < '0' || digits[0] > '9') return std::nullopt;
    extent.axis = negative ? '0' - digits[0] : digits[0] - '0';
    return extent;
  }

 private:
  bool Is(size_t i, std::string_view text) const {
    return i < syntax_.lexed.tokens.size() && syntax_.token(i).Is(text);
  }

  /// The range without static_cast<int>(…), (int)… or int(…) around it.
  TokenRange WithoutCasts(TokenRange value) const {
    for (size_t open = value.begin; open < value.end; ++open) {
      if (syntax_.token(open).kind == Token::Kind::kWord && !Is(open, tensor_)) continue;
      if (Is(open, "<")) open = MatchingClose(syntax_, open);
      if (Is(open, ">")) continue;
      const size_t close = Is(open, "(") ? MatchingClose(syntax_, open) : value.end;
      if (close + 1 == value.end) return WithoutCasts({open + 1, close});
      if (close + 1 < value.end && open == value.begin) return WithoutCasts({close + 1, value.end});
      break;
    }
    return value;
  }

  const CudaSyntax& syntax_;
  std::string_view tensor_;
};

}  // namespace

/// True if the variable is declared as a tensor or is the result of a function that makes tensors.
bool HostScope::IsTensor(const std::string& name) const {
  if (function_ >= syntax_.functions.size()) return false;
  const auto value = definitions_.find(name);
  if (value != definitions_.end())
    return !TensorsIn(value->second).empty() || MadeOfExtents(value->second).has_value();
  for (const TokenRange& parameter :
       SplitArguments(syntax_, syntax_.functions[function_].parameters, true)) {
    if (!syntax_.token(parameter.end - 1).Is(name)) continue;
    for (size_t i = parameter.begin; i < parameter.end; ++i) {
      if (syntax_.token(i).Is("Tensor")) return true;
    }
  }
  return false;
}

/// The tensors that an expression names outside of lists of extents.
std::vector<std::string> HostScope::TensorsIn(TokenRange range) const {
  std::vector<std::string> all;
  if (function_ >= syntax_.functions.size()) return all;
  for (const TokenRange& parameter :
       SplitArguments(syntax_, syntax_.functions[function_].parameters, true)) {
    const std::string_view name = syntax_.token(parameter.end - 1).text;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (syntax_.token(i).Is(name) && IsTensor(std::string(name))) all.emplace_back(name);
    }
  }
  return all;
}

/// The list of extents in `torch::empty({rows, cols}, …)`.
std::optional<TokenRange> HostScope::MadeOfExtents(TokenRange value) const {
  for (size_t i = value.begin; i + 1 < value.end; ++i) {
    if (syntax_.token(i).Is("(") && syntax_.token(i + 1).Is("{"))
      return TokenRange{i + 2, MatchingClose(syntax_, i + 1)};
  }
  return std::nullopt;
}

Result<std::string> HostScope::ElementsOfTensor(const std::string& name, int depth) {
  if (depth > kMostNested) return Unknown(name);
  if (const auto value = definitions_.find(name); value != definitions_.end()) {
    const auto extents = MadeOfExtents(value->second);
    if (extents) return ProductOf(SplitArguments(syntax_, *extents, true));
    // torch::empty_like(x), x.contiguous()
    const std::vector<std::string> others = TensorsIn(value->second);
    return others.empty() || others[0] == name ? Unknown(name)
                                               : ElementsOfTensor(others[0], depth + 1);
  }
  if (const auto above = InCaller(name)) {
    const std::vector<std::string> given = above->first->TensorsIn(above->second);
    return given.empty() ? Unknown(name) : above->first->ElementsOfTensor(given[0], depth + 1);
  }
  return ElementsBySizes(name);
}

/// The number of elements by variables that hold the sizes: rows * cols if these are x.size(0) and
/// x.size(1).
Result<std::string> HostScope::ElementsBySizes(const std::string& name) {
  std::map<int64_t, std::string> axes;
  for (const auto& [variable, value] : definitions_) {
    const auto extent = Uses(syntax_, name).Of(variable, value);
    if (!extent) continue;
    if (!extent->whole) {
      axes.emplace(extent->axis, variable);
      continue;
    }
    ATUNNER_TRY(const std::string part, NameValue(variable, 0));
    if (extent->divisor.empty()) return part;
    ATUNNER_TRY(const std::string divisor, Convert(Copy(extent->divisor), 0));
    return "(" + part + ") * (" + divisor + ")";
  }
  const bool ends = axes.contains(-1) && axes.size() == 2;  // x.size(0) and x.size(-1)
  int64_t expected = ends ? -1 : 0;
  if (std::ranges::any_of(axes, [&](const auto& one) { return one.first != expected++; }))
    return Unknown(name);
  std::string product;
  for (const auto& [axis, variable] : axes) {
    ATUNNER_TRY(const std::string one, NameValue(variable, 0));
    product += (product.empty() ? "(" : " * (") + one + ")";
  }
  return product.empty() ? Result<std::string>(Unknown(name)) : product;
}

Result<std::string> HostScope::ProductOf(const std::vector<TokenRange>& extents) {
  std::string product;
  for (const TokenRange& extent : extents) {
    ATUNNER_TRY(const std::string one, Convert(Copy(extent), 0));
    product += (product.empty() ? "(" : " * (") + one + ")";
  }
  return product.empty() ? Result<std::string>(Unknown("{}")) : product;
}

}  // namespace atunner
