// How many tokens and how much money a run may spend on a language model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "atunner/llm/chat.h"

namespace atunner::llm {

struct TokenBudget {
  std::optional<int64_t> tokens;  ///< input and output together
  std::optional<double> dollars;
  double input_price = 0;  ///< dollars per million tokens
  double output_price = 0;

  /// `text`: "200k", "2usd" or both, "2usd,200k"; `prices`: "1.25,10", dollars per million tokens
  /// of input and of output. kInvalidInput for a limit in money without prices: those change, and
  /// the program knows none.
  static Result<TokenBudget> Parse(std::string_view text, std::string_view prices);
};

/// Passes requests on until the budget is spent. An answer's greatest length is counted before it
/// is asked for, so that the budget is never exceeded by more than a service miscounts.
class BudgetedChat : public Chat {
 public:
  BudgetedChat(std::unique_ptr<Chat> inner, TokenBudget budget)
      : inner_(std::move(inner)), budget_(budget) {}

  /// kTimeout ("a limit ran out") when the budget does not allow the request.
  Result<ChatReply> Ask(const ChatRequest& request, const std::stop_token& stop) override;
  int64_t tokens() const { return input_ + output_; }
  int64_t input_tokens() const { return input_; }
  int64_t output_tokens() const { return output_; }
  double dollars() const;
  /// Adds what earlier sessions spent.
  void Count(int64_t input, int64_t output);

 private:
  std::unique_ptr<Chat> inner_;
  TokenBudget budget_;
  int64_t input_ = 0;
  int64_t output_ = 0;
};

}  // namespace atunner::llm
