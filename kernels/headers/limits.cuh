// <limits>: numeric_limits of integers, float and double.
#pragma once
namespace std {

template <class _T>
struct numeric_limits {
  static constexpr bool is_specialized = false;
};
#define ATUNNER_LIMITS(TYPE, LOWEST, MAX, DIGITS, DIGITS10)                                        \
  template <>                                                                                      \
  struct numeric_limits<TYPE> {                                                                    \
    typedef TYPE _T;                                                                               \
    static constexpr bool is_specialized = true, is_integer = true, is_exact = true,               \
                          is_signed = _T(-1) < _T(0), has_infinity = false, has_quiet_NaN = false; \
    static constexpr int digits = DIGITS, digits10 = DIGITS10, radix = 2;                          \
    static constexpr _T min() { return LOWEST; }                                                   \
    static constexpr _T lowest() { return LOWEST; }                                                \
    static constexpr _T max() { return MAX; }                                                      \
    static constexpr _T epsilon() { return 0; }                                                    \
    static constexpr _T infinity() { return 0; }                                                   \
    static constexpr _T quiet_NaN() { return 0; }                                                  \
  };
#define ATUNNER_SIGNED(TYPE)                                                                 \
  ATUNNER_LIMITS(TYPE, _T(1ull << (8 * sizeof(_T) - 1)), _T(~0ull >> (65 - 8 * sizeof(_T))), \
                 8 * sizeof(_T) - 1, (8 * sizeof(_T) - 1) * 30103 / 100000)
#define ATUNNER_UNSIGNED(TYPE) \
  ATUNNER_LIMITS(TYPE, 0, _T(-1), 8 * sizeof(_T), 8 * sizeof(_T) * 30103 / 100000)
ATUNNER_LIMITS(bool, false, true, 1, 0)
ATUNNER_SIGNED(char)
ATUNNER_SIGNED(signed char)
ATUNNER_SIGNED(short)
ATUNNER_SIGNED(int)
ATUNNER_SIGNED(long)
ATUNNER_SIGNED(long long)
ATUNNER_UNSIGNED(unsigned char)
ATUNNER_UNSIGNED(unsigned short)
ATUNNER_UNSIGNED(unsigned)
ATUNNER_UNSIGNED(unsigned long)
ATUNNER_UNSIGNED(unsigned long long)
#undef ATUNNER_UNSIGNED
#undef ATUNNER_SIGNED
#undef ATUNNER_LIMITS

#define ATUNNER_LIMITS(_T, MIN, MAX, EPSILON, DENORM, INFINITE, NAN_, DIGITS, DIGITS10, MOST10)  \
  template <>                                                                                    \
  struct numeric_limits<_T> {                                                                    \
    static constexpr bool is_specialized = true, is_integer = false, is_exact = false,           \
                          is_signed = true, has_infinity = true, has_quiet_NaN = true;           \
    static constexpr int digits = DIGITS, digits10 = DIGITS10, max_digits10 = MOST10, radix = 2; \
    static constexpr _T min() { return MIN; }                                                    \
    static constexpr _T lowest() { return -MAX; }                                                \
    static constexpr _T max() { return MAX; }                                                    \
    static constexpr _T epsilon() { return EPSILON; }                                            \
    static constexpr _T denorm_min() { return DENORM; }                                          \
    static constexpr _T infinity() { return INFINITE; }                                          \
    static constexpr _T quiet_NaN() { return NAN_; }                                             \
  };
ATUNNER_LIMITS(float, 1.17549435e-38f, 3.40282347e+38f, 1.19209290e-07f, 1.40129846e-45f,
               __builtin_bit_cast(float, 0x7f800000), __builtin_bit_cast(float, 0x7fc00000), 24, 6,
               9)
ATUNNER_LIMITS(double, 2.2250738585072014e-308, 1.7976931348623157e+308, 2.2204460492503131e-16,
               4.9406564584124654e-324, __builtin_bit_cast(double, 0x7ff0000000000000),
               __builtin_bit_cast(double, 0x7ff8000000000000), 53, 15, 17)
#undef ATUNNER_LIMITS

}  // namespace std
