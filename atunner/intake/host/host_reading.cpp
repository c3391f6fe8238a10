#include "atunner/intake/host/host_reading.h"

#include <algorithm>
#include <utility>

#include "atunner/intake/expression_text.h"
#include "atunner/intake/host/host_statements.h"
#include "atunner/model/expr/expr.h"

namespace atunner {
namespace {

using Kind = HostValue::Kind;

constexpr size_t kMostCallers = 6;

bool Names(const CudaSyntax& syntax, TokenRange range, std::string_view word) {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (syntax.token(i).Is(word)) return true;
  }
  return false;
}

/// The function, before it one that calls it, and so on: where a walk may begin if main does not
/// lead to the launch.
std::vector<size_t> CallersOf(const CudaSyntax& syntax, size_t function) {
  std::vector<size_t> chain;
  while (function < syntax.functions.size() && chain.size() < kMostCallers) {
    chain.insert(chain.begin(), function);
    size_t caller = SIZE_MAX;
    for (size_t f = 0; f < syntax.functions.size() && caller == SIZE_MAX; ++f) {
      if (std::ranges::find(chain, f) == chain.end() &&
          Names(syntax, syntax.functions[f].body, syntax.functions[function].name))
        caller = f;
    }
    function = caller;
  }
  return chain;
}

}  // namespace

HostReading::HostReading(const CudaSyntax& syntax, const KernelDefinition& kernel,
                         const Dims& stated)
    : syntax_(syntax), stated_(stated) {
  Walk(kernel);
}

void HostReading::Start(const std::vector<const KernelLaunch*>& launches) {
  RelevantNames relevant;
  if (state_) relevant = std::move(state_->relevant);
  state_ = std::make_unique<HostState>(syntax_, stated_);
  state_->launches = launches;
  state_->relevant = relevant.empty() ? RelevantFunctions(syntax_, launches) : std::move(relevant);
}

void HostReading::Walk(const KernelDefinition& kernel) {
  std::vector<const KernelLaunch*> launches;
  for (const KernelLaunch& launch : syntax_.launches) {
    if (IsLaunchOf(launch, kernel)) launches.push_back(&launch);
  }
  using Begin = std::pair<size_t, std::optional<int64_t>>;
  std::vector<Begin> begins;
  for (size_t f = 0; f < syntax_.functions.size(); ++f) {
    if (syntax_.functions[f].name != "main") continue;
    begins.emplace_back(f, 1);             // as it runs without arguments
    begins.emplace_back(f, std::nullopt);  // if it wants some
  }
  for (const KernelLaunch* launch : launches) {
    for (const size_t f : CallersOf(syntax_, launch->function))
      begins.emplace_back(f, std::nullopt);
  }
  for (const auto& [function, arguments] : begins) {
    if (launches.empty() || (state_ && state_->reached)) break;
    Start(launches);
    WalkFrom(*state_, function, arguments);
  }
  if (!state_ || !state_->reached) Start(launches);
  launch_ = state_->reached || launches.empty() ? state_->reached : launches.front();
  frame_ = std::move(state_->at_launch);
  state_->reached = nullptr;
  state_->exited = false;
}

/// The value of an expression at the launch; `missing_` is set if it is unknown.
HostValue HostReading::ValueOf(TokenRange range) {
  constexpr int kMostSteps = 10'000;
  state_->steps_left = kMostSteps;
  HostValue value = Evaluate(*state_, frame_, range);
  missing_ = {};
  missing_.Add(value.missing);
  return value;
}

/// The text of a number with the names that leaves have outside; nullopt for other values.
std::optional<std::string> HostReading::TextOf(const HostValue& value) {
  missing_ = {};
  const auto expr = Expr::Parse(value.text);
  if (!value.Is(Kind::kNumber) || !expr) {
    missing_.Add(value.missing);
    return std::nullopt;
  }
  std::string text = value.text;
  for (const std::string& unique : expr->Names()) {
    const auto of = state_->leaves.find(unique);
    if (of == state_->leaves.end()) continue;
    const Leaf& leaf = of->second;
    const auto [known, fresh] = leaves_.try_emplace(leaf.name, leaf);
    const std::string name = known->second.value == leaf.value ? leaf.name
                                                               : std::to_string(leaf.value);
    if (name != unique) text = ReplaceWord(text, unique, name);
  }
  return text;
}

std::optional<std::string> HostReading::Expression(TokenRange range) {
  return TextOf(ValueOf(range));
}

std::optional<std::array<std::string, 3>> HostReading::Extents(TokenRange range) {
  HostValue value = ValueOf(range);
  if (value.Is(Kind::kList)) value = HostValue::Extents(value.items);
  if (value.Is(Kind::kNumber)) value = HostValue::Extents({value});
  if (!value.Is(Kind::kExtents)) return std::nullopt;
  std::array<std::string, 3> extents;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto text = TextOf(value.items[axis]);
    if (!text) return std::nullopt;
    extents[axis] = *text;
  }
  return extents;
}

std::optional<HostReading::Buffer> HostReading::BufferOf(TokenRange range) {
  const HostValue value = ValueOf(range);
  if (!value.Is(Kind::kBuffer)) return std::nullopt;
  const auto bytes = TextOf(value.buffer->bytes);
  if (!bytes) return std::nullopt;
  return Buffer{value.buffer.get(), *bytes, value.buffer->zeroed};
}

std::string HostReading::TypeOf(TokenRange range, bool pointer) {
  const HostValue value = ValueOf(range);
  if (pointer != value.Is(Kind::kBuffer)) return "";
  return TypeNamed(pointer ? value.buffer->type : value.type);
}

std::string HostReading::TypeNamed(const std::string& name) const {
  const auto bound = frame_.types.find(name);
  return bound == frame_.types.end() ? name : bound->second;
}

bool HostReading::IsFilled(const std::string& variable) const {
  return state_->symbols.contains(variable);
}

std::vector<std::string> HostReading::ValuesOf(const std::string& variable) {
  const auto found = state_->symbols.find(variable);
  if (found == state_->symbols.end()) return {};
  std::vector<HostValue> items = found->second.items;
  if (found->second.Is(Kind::kNumber)) items = {found->second};
  std::vector<std::string> texts;
  for (const HostValue& item : items) {
    const auto text = TextOf(item);
    if (!text) return {};
    texts.push_back(*text);
  }
  return texts;
}

}  // namespace atunner
