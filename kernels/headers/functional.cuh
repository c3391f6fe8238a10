// <functional>: the operators as objects.
#pragma once
namespace std {

#define ATUNNER_FUNCTIONAL(NAME, EXPRESSION)                                         \
  template <class _T = void>                                                         \
  struct NAME {                                                                      \
    constexpr auto operator()(const _T& a, const _T& b) const { return EXPRESSION; } \
  };                                                                                 \
  template <>                                                                        \
  struct NAME<void> {                                                                \
    template <class _T, class _U>                                                    \
    constexpr auto operator()(const _T& a, const _U& b) const {                      \
      return EXPRESSION;                                                             \
    }                                                                                \
  };
ATUNNER_FUNCTIONAL(plus, a + b)
ATUNNER_FUNCTIONAL(minus, a - b)
ATUNNER_FUNCTIONAL(multiplies, a* b)
ATUNNER_FUNCTIONAL(divides, a / b)
ATUNNER_FUNCTIONAL(modulus, a % b)
ATUNNER_FUNCTIONAL(equal_to, a == b)
ATUNNER_FUNCTIONAL(not_equal_to, a != b)
ATUNNER_FUNCTIONAL(less, a < b)
ATUNNER_FUNCTIONAL(less_equal, a <= b)
ATUNNER_FUNCTIONAL(greater, a > b)
ATUNNER_FUNCTIONAL(greater_equal, a >= b)
ATUNNER_FUNCTIONAL(logical_and, a&& b)
ATUNNER_FUNCTIONAL(logical_or, a || b)
ATUNNER_FUNCTIONAL(bit_and, a& b)
ATUNNER_FUNCTIONAL(bit_or, a | b)
ATUNNER_FUNCTIONAL(bit_xor, a ^ b)
#undef ATUNNER_FUNCTIONAL

}  // namespace std
