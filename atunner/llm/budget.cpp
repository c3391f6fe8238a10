#include "atunner/llm/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace atunner::llm {
namespace {

constexpr const char* kForms = "use 200k (tokens), 2usd or both: 2usd,200k";
constexpr double kBytesPerToken = 4;

/// The text up to the next comma, which is removed.
std::string_view TakeItem(std::string_view& text) {
  const size_t end = std::min(text.find(','), text.size());
  const std::string_view item = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return item;
}

/// A positive number with one of the suffixes behind it; nullopt for anything else.
std::optional<double> NumberIn(std::string_view text, std::string_view& suffix) {
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || !(number > 0) || number > 1e15) return std::nullopt;
  suffix = text.substr(static_cast<size_t>(end - copy.c_str()));
  return number;
}

int64_t EstimatedTokens(const ChatRequest& request) {
  size_t bytes = request.system.size();
  for (const Message& message : request.messages) bytes += message.text.size();
  return static_cast<int64_t>(static_cast<double>(bytes) / kBytesPerToken) + 1;
}

}  // namespace

Result<TokenBudget> TokenBudget::Parse(std::string_view text, std::string_view prices) {
  TokenBudget budget;
  while (!text.empty()) {
    std::string_view suffix;
    const auto number = NumberIn(TakeItem(text), suffix);
    if (number && (suffix == "usd" || suffix == "USD"))
      budget.dollars = *number;
    else if (number && (suffix.empty() || suffix == "k" || suffix == "M"))
      budget.tokens = static_cast<int64_t>(*number * (suffix == "k"   ? 1e3
                                                      : suffix == "M" ? 1e6
                                                                      : 1));
    else
      return Invalid("this is no budget for a language model", "request.llm_budget", kForms);
  }
  if (!prices.empty()) {
    std::string_view suffix;
    const auto input = NumberIn(TakeItem(prices), suffix);
    const auto output = suffix.empty() ? NumberIn(prices, suffix) : std::nullopt;
    if (!input || !output || !suffix.empty())
      return Invalid("prices are two numbers", "request.llm_prices",
                     "dollars per million tokens of input and of output: 1.25,10");
    budget.input_price = *input;
    budget.output_price = *output;
  }
  if (budget.dollars && budget.input_price <= 0)
    return Invalid("a limit in money needs the model's prices", "request.llm_prices",
                   "dollars per million tokens of input and of output: 1.25,10");
  return budget;
}

double BudgetedChat::dollars() const {
  return (static_cast<double>(input_) * budget_.input_price +
          static_cast<double>(output_) * budget_.output_price) /
         1e6;
}

void BudgetedChat::Count(int64_t input, int64_t output) {
  input_ += input;
  output_ += output;
}

Result<ChatReply> BudgetedChat::Ask(const ChatRequest& request, const std::stop_token& stop) {
  const int64_t input = EstimatedTokens(request);
  const int64_t worst = tokens() + input + request.most_tokens;
  const double cost = dollars() +
                      (static_cast<double>(input) * budget_.input_price +
                       static_cast<double>(request.most_tokens) * budget_.output_price) /
                          1e6;
  if (budget_.tokens && worst > *budget_.tokens)
    return Fail(ErrorCode::kTimeout,
                fmt::format("the language model's budget is spent: {} of {} tokens", tokens(),
                            *budget_.tokens));
  if (budget_.dollars && cost > *budget_.dollars)
    return Fail(ErrorCode::kTimeout,
                fmt::format("the language model's budget is spent: {:.4f} of {:.4f} dollars",
                            dollars(), *budget_.dollars));
  ATUNNER_TRY(ChatReply reply, inner_->Ask(request, stop));
  Count(reply.input_tokens, reply.output_tokens);
  return reply;
}

}  // namespace atunner::llm
