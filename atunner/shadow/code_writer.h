// Writes the PTX of one instruction after another: the code before and behind the original, and its
// temporary registers.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "atunner/ptx/statements.h"

namespace atunner::shadow {

class CodeWriter {
 public:
  /// Begins the code of one instruction.
  void Begin(const ptx::TextInstruction& instruction);
  /// Later code goes behind the original instruction, and may read its results.
  void Behind() { out_ = &after_; }
  const std::string& before() const { return before_; }
  const std::string& after() const { return after_; }
  const ptx::TextInstruction& instruction() const { return *instruction_; }
  const ptx::TextOperand& operand(size_t index) const { return instruction_->operands[index]; }

  /// One instruction without side effects, executed even where the guard is false.
  template <class... Args>
  void Put(fmt::format_string<Args...> text, Args&&... args) {
    Line(fmt::format(text, std::forward<Args>(args)...));
  }
  /// One instruction under the original's guard.
  template <class... Args>
  void PutGuarded(fmt::format_string<Args...> text, Args&&... args) {
    Line(instruction_->guard + fmt::format(text, std::forward<Args>(args)...));
  }
  void Line(std::string_view text);

  /// New temporaries of the current instruction.
  std::string Double() { return Temporary(0); }
  std::string Word() { return Temporary(1); }
  std::string Half() { return Temporary(2); }
  std::string Quad() { return Temporary(3); }
  std::string Predicate() { return Temporary(4); }
  std::string Label() { return fmt::format("$atunner_{}", labels_++); }

  /// Declarations of all temporaries that were named.
  std::string Temporaries() const;

 private:
  std::string Temporary(size_t pool);

  const ptx::TextInstruction* instruction_ = nullptr;
  std::string before_, after_;
  std::string* out_ = &before_;
  static constexpr size_t kPools = 5;
  std::array<int, kPools> used_{}, most_{};
  int labels_ = 0;
};

}  // namespace atunner::shadow
