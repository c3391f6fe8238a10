// <utility>: pairs and sequences of integers. move and forward are the compiler's own.
#pragma once
#include <algorithm>
#include <type_traits>
namespace std {

template <class A, class B>
struct pair {
  typedef A first_type;
  typedef B second_type;
  A first;
  B second;
  constexpr pair() : first(), second() {}
  constexpr pair(const A& a, const B& b) : first(a), second(b) {}
};
template <class A, class B>
pair(A, B) -> pair<A, B>;
template <class A, class B>
constexpr pair<A, B> make_pair(A a, B b) {
  return pair<A, B>(a, b);
}
template <class A, class B>
constexpr bool operator==(const pair<A, B>& x, const pair<A, B>& y) {
  return x.first == y.first && x.second == y.second;
}
template <class A, class B>
constexpr bool operator!=(const pair<A, B>& x, const pair<A, B>& y) {
  return !(x == y);
}
template <class A, class B>
constexpr bool operator<(const pair<A, B>& x, const pair<A, B>& y) {
  return x.first < y.first || (!(y.first < x.first) && x.second < y.second);
}

template <class T, class U = T>
constexpr T exchange(T& place, U&& value) {
  T before = static_cast<T&&>(place);
  place = static_cast<U&&>(value);
  return before;
}
template <class T>
constexpr const T& as_const(T& x) {
  return x;
}

template <class T, T... values>
struct integer_sequence {
  typedef T value_type;
  static constexpr decltype(sizeof(0)) size() { return sizeof...(values); }
};
template <decltype(sizeof(0))... values>
using index_sequence = integer_sequence<decltype(sizeof(0)), values...>;
namespace detail {
template <class T, decltype(sizeof(0)) n, T... values>
struct sequence_of : sequence_of<T, n - 1, T(n - 1), values...> {};
template <class T, T... values>
struct sequence_of<T, 0, values...> {
  typedef integer_sequence<T, values...> type;
};
}  // namespace detail
template <class T, T n>
using make_integer_sequence = typename detail::sequence_of<T, n>::type;
template <decltype(sizeof(0)) n>
using make_index_sequence = make_integer_sequence<decltype(sizeof(0)), n>;
template <class... T>
using index_sequence_for = make_index_sequence<sizeof...(T)>;

}  // namespace std
