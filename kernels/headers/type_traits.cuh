// <type_traits>: what kernels ask of their template parameters.
#pragma once
namespace std {

typedef decltype(nullptr) nullptr_t;
template <class _T, _T v>
struct integral_constant {
  static constexpr _T value = v;
  typedef _T value_type;
  typedef integral_constant type;
  constexpr operator _T() const { return v; }
  constexpr _T operator()() const { return v; }
};
template <bool v>
using bool_constant = integral_constant<bool, v>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool, class _T = void>
struct enable_if {};
template <class _T>
struct enable_if<true, _T> {
  typedef _T type;
};
template <bool, class _T, class _F>
struct conditional {
  typedef _T type;
};
template <class _T, class _F>
struct conditional<false, _T, _F> {
  typedef _F type;
};
template <bool c, class _T = void>
using enable_if_t = typename enable_if<c, _T>::type;
template <bool c, class _T, class _F>
using conditional_t = typename conditional<c, _T, _F>::type;
template <class...>
using void_t = void;
template <class _T>
struct type_identity {
  typedef _T type;
};

template <class _T>
struct remove_const : type_identity<_T> {};
template <class _T>
struct remove_const<const _T> : type_identity<_T> {};
template <class _T>
struct remove_volatile : type_identity<_T> {};
template <class _T>
struct remove_volatile<volatile _T> : type_identity<_T> {};
template <class _T>
struct remove_cv : remove_const<typename remove_volatile<_T>::type> {};
template <class _T>
struct remove_reference : type_identity<_T> {};
template <class _T>
struct remove_reference<_T&> : type_identity<_T> {};
template <class _T>
struct remove_reference<_T&&> : type_identity<_T> {};
template <class _T>
struct remove_pointer : type_identity<_T> {};
template <class _T>
struct remove_pointer<_T*> : type_identity<_T> {};
template <class _T>
struct remove_pointer<_T* const> : type_identity<_T> {};
template <class _T>
struct remove_extent : type_identity<_T> {};
template <class _T>
struct remove_extent<_T[]> : type_identity<_T> {};
template <class _T, decltype(sizeof(0)) n>
struct remove_extent<_T[n]> : type_identity<_T> {};
template <class _T>
struct remove_cvref : remove_cv<typename remove_reference<_T>::type> {};
template <class _T>
struct add_const : type_identity<const _T> {};
template <class _T>
struct add_pointer : type_identity<typename remove_reference<_T>::type*> {};
template <class _T>
using remove_const_t = typename remove_const<_T>::type;
template <class _T>
using remove_volatile_t = typename remove_volatile<_T>::type;
template <class _T>
using remove_cv_t = typename remove_cv<_T>::type;
template <class _T>
using remove_reference_t = typename remove_reference<_T>::type;
template <class _T>
using remove_pointer_t = typename remove_pointer<_T>::type;
template <class _T>
using remove_extent_t = typename remove_extent<_T>::type;
template <class _T>
using remove_cvref_t = typename remove_cvref<_T>::type;
template <class _T>
using add_const_t = typename add_const<_T>::type;
template <class _T>
using add_pointer_t = typename add_pointer<_T>::type;

template <class _T, class _U>
struct is_same : false_type {};
template <class _T>
struct is_same<_T, _T> : true_type {};
template <class _T>
struct is_const : false_type {};
template <class _T>
struct is_const<const _T> : true_type {};
template <class _T>
struct is_pointer : bool_constant<!is_same<_T, remove_pointer_t<_T>>::value> {};
template <class _T>
struct is_reference : bool_constant<!is_same<_T, remove_reference_t<_T>>::value> {};
template <class _T>
struct is_array : bool_constant<!is_same<_T, remove_extent_t<_T>>::value> {};
template <class _T>
struct is_void : is_same<remove_cv_t<_T>, void> {};
template <class _T>
struct is_null_pointer : is_same<remove_cv_t<_T>, nullptr_t> {};
template <class _T>
struct is_class : bool_constant<__is_class(_T)> {};
template <class _T>
struct is_union : bool_constant<__is_union(_T)> {};
template <class _T>
struct is_enum : bool_constant<__is_enum(_T)> {};
template <class _T>
struct is_empty : bool_constant<__is_empty(_T)> {};
template <class _T>
struct is_trivially_copyable : bool_constant<__is_trivially_copyable(_T)> {};
template <class _T>
struct is_standard_layout : bool_constant<__is_standard_layout(_T)> {};
template <class _T, class _U>
struct is_base_of : bool_constant<__is_base_of(_T, _U)> {};
template <class _T, class _U>
struct is_convertible : bool_constant<__is_convertible_to(_T, _U)> {};
template <class _T, class... _A>
struct is_constructible : bool_constant<__is_constructible(_T, _A...)> {};

namespace detail {
template <class _T, class... _U>
struct is_one_of : bool_constant<(is_same<remove_cv_t<_T>, _U>::value || ...)> {};
}  // namespace detail
template <class _T>
struct is_floating_point : detail::is_one_of<_T, float, double> {};
template <class _T>
struct is_integral
    : detail::is_one_of<_T, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t,
                        short, unsigned short, int, unsigned, long, unsigned long, long long,
                        unsigned long long, __int128, unsigned __int128> {};
template <class _T>
struct is_arithmetic : bool_constant<is_integral<_T>::value || is_floating_point<_T>::value> {};
template <class _T>
struct is_scalar : bool_constant<is_arithmetic<_T>::value || is_enum<_T>::value ||
                                 is_pointer<_T>::value || is_null_pointer<_T>::value> {};
namespace detail {
template <class _T, bool = is_arithmetic<_T>::value>
struct below_zero : bool_constant<(_T(-1) < _T(0))> {};
template <class _T>
struct below_zero<_T, false> : false_type {};
}  // namespace detail
template <class _T>
struct is_signed : detail::below_zero<remove_cv_t<_T>> {};
template <class _T>
struct is_unsigned : bool_constant<is_integral<_T>::value && !is_signed<_T>::value> {};

template <class _T, class _U>
inline constexpr bool is_same_v = is_same<_T, _U>::value;
template <class _T>
inline constexpr bool is_const_v = is_const<_T>::value;
template <class _T>
inline constexpr bool is_pointer_v = is_pointer<_T>::value;
template <class _T>
inline constexpr bool is_reference_v = is_reference<_T>::value;
template <class _T>
inline constexpr bool is_array_v = is_array<_T>::value;
template <class _T>
inline constexpr bool is_void_v = is_void<_T>::value;
template <class _T>
inline constexpr bool is_class_v = is_class<_T>::value;
template <class _T>
inline constexpr bool is_enum_v = is_enum<_T>::value;
template <class _T>
inline constexpr bool is_empty_v = is_empty<_T>::value;
template <class _T>
inline constexpr bool is_trivially_copyable_v = is_trivially_copyable<_T>::value;
template <class _T, class _U>
inline constexpr bool is_base_of_v = is_base_of<_T, _U>::value;
template <class _T, class _U>
inline constexpr bool is_convertible_v = is_convertible<_T, _U>::value;
template <class _T>
inline constexpr bool is_floating_point_v = is_floating_point<_T>::value;
template <class _T>
inline constexpr bool is_integral_v = is_integral<_T>::value;
template <class _T>
inline constexpr bool is_arithmetic_v = is_arithmetic<_T>::value;
template <class _T>
inline constexpr bool is_scalar_v = is_scalar<_T>::value;
template <class _T>
inline constexpr bool is_signed_v = is_signed<_T>::value;
template <class _T>
inline constexpr bool is_unsigned_v = is_unsigned<_T>::value;

template <class... _B>
struct conjunction : bool_constant<(_B::value && ...)> {};
template <class... _B>
struct disjunction : bool_constant<(_B::value || ...)> {};
template <class _B>
struct negation : bool_constant<!_B::value> {};
template <class... _B>
inline constexpr bool conjunction_v = conjunction<_B...>::value;
template <class... _B>
inline constexpr bool disjunction_v = disjunction<_B...>::value;
template <class _B>
inline constexpr bool negation_v = negation<_B>::value;

template <class _T>
struct make_signed;
template <class _T>
struct make_unsigned;
#define ATUNNER_SIGNS(_S)                                            \
  template <>                                                        \
  struct make_signed<unsigned _S> : type_identity<signed _S> {};     \
  template <>                                                        \
  struct make_signed<signed _S> : type_identity<signed _S> {};       \
  template <>                                                        \
  struct make_unsigned<unsigned _S> : type_identity<unsigned _S> {}; \
  template <>                                                        \
  struct make_unsigned<signed _S> : type_identity<unsigned _S> {};
ATUNNER_SIGNS(char)
ATUNNER_SIGNS(short)
ATUNNER_SIGNS(int)
ATUNNER_SIGNS(long)
ATUNNER_SIGNS(long long)
#undef ATUNNER_SIGNS
template <>
struct make_signed<char> : type_identity<signed char> {};
template <>
struct make_unsigned<char> : type_identity<unsigned char> {};
template <class _T>
using make_signed_t = typename make_signed<_T>::type;
template <class _T>
using make_unsigned_t = typename make_unsigned<_T>::type;
template <class _T>
struct underlying_type : type_identity<__underlying_type(_T)> {};
template <class _T>
using underlying_type_t = typename underlying_type<_T>::type;

template <class _T>
_T&& declval() noexcept;
namespace detail {
template <class _T>
struct by_value : conditional<is_array<_T>::value, remove_extent_t<_T>*, remove_cv_t<_T>> {};
}  // namespace detail
template <class _T>
struct decay : detail::by_value<remove_reference_t<_T>> {};
template <class _T>
using decay_t = typename decay<_T>::type;
template <class... _T>
struct common_type;
template <class _T>
struct common_type<_T> : decay<_T> {};
template <class _T, class _U, class... _V>
struct common_type<_T, _U, _V...>
    : common_type<decay_t<decltype(false ? declval<_T>() : declval<_U>())>, _V...> {};
template <class... _T>
using common_type_t = typename common_type<_T...>::type;
template <class _F, class... _A>
struct invoke_result : type_identity<decltype(declval<_F>()(declval<_A>()...))> {};
template <class _F, class... _A>
using invoke_result_t = typename invoke_result<_F, _A...>::type;

template <decltype(sizeof(0)) bytes, decltype(sizeof(0)) alignment = 16>
struct aligned_storage {
  struct type {
    alignas(alignment) unsigned char data[bytes];
  };
};
template <decltype(sizeof(0)) bytes, decltype(sizeof(0)) alignment = 16>
using aligned_storage_t = typename aligned_storage<bytes, alignment>::type;
template <class _T>
struct alignment_of : integral_constant<decltype(sizeof(0)), alignof(_T)> {};

}  // namespace std
