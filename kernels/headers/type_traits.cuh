// <type_traits>: what kernels ask of their template parameters.
#pragma once
namespace std {

typedef decltype(nullptr) nullptr_t;
template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
template <bool v>
using bool_constant = integral_constant<bool, v>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool, class T, class F>
struct conditional {
  typedef T type;
};
template <class T, class F>
struct conditional<false, T, F> {
  typedef F type;
};
template <bool c, class T = void>
using enable_if_t = typename enable_if<c, T>::type;
template <bool c, class T, class F>
using conditional_t = typename conditional<c, T, F>::type;
template <class...>
using void_t = void;
template <class T>
struct type_identity {
  typedef T type;
};

template <class T>
struct remove_const : type_identity<T> {};
template <class T>
struct remove_const<const T> : type_identity<T> {};
template <class T>
struct remove_volatile : type_identity<T> {};
template <class T>
struct remove_volatile<volatile T> : type_identity<T> {};
template <class T>
struct remove_cv : remove_const<typename remove_volatile<T>::type> {};
template <class T>
struct remove_reference : type_identity<T> {};
template <class T>
struct remove_reference<T&> : type_identity<T> {};
template <class T>
struct remove_reference<T&&> : type_identity<T> {};
template <class T>
struct remove_pointer : type_identity<T> {};
template <class T>
struct remove_pointer<T*> : type_identity<T> {};
template <class T>
struct remove_pointer<T* const> : type_identity<T> {};
template <class T>
struct remove_extent : type_identity<T> {};
template <class T>
struct remove_extent<T[]> : type_identity<T> {};
template <class T, decltype(sizeof(0)) n>
struct remove_extent<T[n]> : type_identity<T> {};
template <class T>
struct remove_cvref : remove_cv<typename remove_reference<T>::type> {};
template <class T>
struct add_const : type_identity<const T> {};
template <class T>
struct add_pointer : type_identity<typename remove_reference<T>::type*> {};
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
using remove_volatile_t = typename remove_volatile<T>::type;
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <class T>
using remove_extent_t = typename remove_extent<T>::type;
template <class T>
using remove_cvref_t = typename remove_cvref<T>::type;
template <class T>
using add_const_t = typename add_const<T>::type;
template <class T>
using add_pointer_t = typename add_pointer<T>::type;

template <class T, class U>
struct is_same : false_type {};
template <class T>
struct is_same<T, T> : true_type {};
template <class T>
struct is_const : false_type {};
template <class T>
struct is_const<const T> : true_type {};
template <class T>
struct is_pointer : bool_constant<!is_same<T, remove_pointer_t<T>>::value> {};
template <class T>
struct is_reference : bool_constant<!is_same<T, remove_reference_t<T>>::value> {};
template <class T>
struct is_array : bool_constant<!is_same<T, remove_extent_t<T>>::value> {};
template <class T>
struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T>
struct is_null_pointer : is_same<remove_cv_t<T>, nullptr_t> {};
template <class T>
struct is_class : bool_constant<__is_class(T)> {};
template <class T>
struct is_union : bool_constant<__is_union(T)> {};
template <class T>
struct is_enum : bool_constant<__is_enum(T)> {};
template <class T>
struct is_empty : bool_constant<__is_empty(T)> {};
template <class T>
struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class T>
struct is_standard_layout : bool_constant<__is_standard_layout(T)> {};
template <class T, class U>
struct is_base_of : bool_constant<__is_base_of(T, U)> {};
template <class T, class U>
struct is_convertible : bool_constant<__is_convertible_to(T, U)> {};
template <class T, class... A>
struct is_constructible : bool_constant<__is_constructible(T, A...)> {};

namespace detail {
template <class T, class... U>
struct is_one_of : bool_constant<(is_same<remove_cv_t<T>, U>::value || ...)> {};
}  // namespace detail
template <class T>
struct is_floating_point : detail::is_one_of<T, float, double> {};
template <class T>
struct is_integral
    : detail::is_one_of<T, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t,
                        short, unsigned short, int, unsigned, long, unsigned long, long long,
                        unsigned long long, __int128, unsigned __int128> {};
template <class T>
struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T>
struct is_scalar : bool_constant<is_arithmetic<T>::value || is_enum<T>::value ||
                                 is_pointer<T>::value || is_null_pointer<T>::value> {};
namespace detail {
template <class T, bool = is_arithmetic<T>::value>
struct below_zero : bool_constant<(T(-1) < T(0))> {};
template <class T>
struct below_zero<T, false> : false_type {};
}  // namespace detail
template <class T>
struct is_signed : detail::below_zero<remove_cv_t<T>> {};
template <class T>
struct is_unsigned : bool_constant<is_integral<T>::value && !is_signed<T>::value> {};

template <class T, class U>
inline constexpr bool is_same_v = is_same<T, U>::value;
template <class T>
inline constexpr bool is_const_v = is_const<T>::value;
template <class T>
inline constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T>
inline constexpr bool is_reference_v = is_reference<T>::value;
template <class T>
inline constexpr bool is_array_v = is_array<T>::value;
template <class T>
inline constexpr bool is_void_v = is_void<T>::value;
template <class T>
inline constexpr bool is_class_v = is_class<T>::value;
template <class T>
inline constexpr bool is_enum_v = is_enum<T>::value;
template <class T>
inline constexpr bool is_empty_v = is_empty<T>::value;
template <class T>
inline constexpr bool is_trivially_copyable_v = is_trivially_copyable<T>::value;
template <class T, class U>
inline constexpr bool is_base_of_v = is_base_of<T, U>::value;
template <class T, class U>
inline constexpr bool is_convertible_v = is_convertible<T, U>::value;
template <class T>
inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T>
inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T>
inline constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T>
inline constexpr bool is_scalar_v = is_scalar<T>::value;
template <class T>
inline constexpr bool is_signed_v = is_signed<T>::value;
template <class T>
inline constexpr bool is_unsigned_v = is_unsigned<T>::value;

template <class... B>
struct conjunction : bool_constant<(B::value && ...)> {};
template <class... B>
struct disjunction : bool_constant<(B::value || ...)> {};
template <class B>
struct negation : bool_constant<!B::value> {};
template <class... B>
inline constexpr bool conjunction_v = conjunction<B...>::value;
template <class... B>
inline constexpr bool disjunction_v = disjunction<B...>::value;
template <class B>
inline constexpr bool negation_v = negation<B>::value;

template <class T>
struct make_signed;
template <class T>
struct make_unsigned;
#define ATUNNER_SIGNS(S)                                           \
  template <>                                                      \
  struct make_signed<unsigned S> : type_identity<signed S> {};     \
  template <>                                                      \
  struct make_signed<signed S> : type_identity<signed S> {};       \
  template <>                                                      \
  struct make_unsigned<unsigned S> : type_identity<unsigned S> {}; \
  template <>                                                      \
  struct make_unsigned<signed S> : type_identity<unsigned S> {};
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
template <class T>
using make_signed_t = typename make_signed<T>::type;
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <class T>
struct underlying_type : type_identity<__underlying_type(T)> {};
template <class T>
using underlying_type_t = typename underlying_type<T>::type;

template <class T>
T&& declval() noexcept;
namespace detail {
template <class T>
struct by_value : conditional<is_array<T>::value, remove_extent_t<T>*, remove_cv_t<T>> {};
}  // namespace detail
template <class T>
struct decay : detail::by_value<remove_reference_t<T>> {};
template <class T>
using decay_t = typename decay<T>::type;
template <class... T>
struct common_type;
template <class T>
struct common_type<T> : decay<T> {};
template <class T, class U, class... V>
struct common_type<T, U, V...>
    : common_type<decay_t<decltype(false ? declval<T>() : declval<U>())>, V...> {};
template <class... T>
using common_type_t = typename common_type<T...>::type;
template <class F, class... A>
struct invoke_result : type_identity<decltype(declval<F>()(declval<A>()...))> {};
template <class F, class... A>
using invoke_result_t = typename invoke_result<F, A...>::type;

template <decltype(sizeof(0)) bytes, decltype(sizeof(0)) alignment = 16>
struct aligned_storage {
  struct type {
    alignas(alignment) unsigned char data[bytes];
  };
};
template <decltype(sizeof(0)) bytes, decltype(sizeof(0)) alignment = 16>
using aligned_storage_t = typename aligned_storage<bytes, alignment>::type;
template <class T>
struct alignment_of : integral_constant<decltype(sizeof(0)), alignof(T)> {};

}  // namespace std
