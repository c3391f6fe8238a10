// <utility>: pairs and sequences of integers. move and forward are the compiler's own.
#pragma once
#include <algorithm>
#include <type_traits>
namespace std {

template <class _A, class _B>
struct pair {
  typedef _A first_type;
  typedef _B second_type;
  _A first;
  _B second;
  constexpr pair() : first(), second() {}
  constexpr pair(const _A& a, const _B& b) : first(a), second(b) {}
};
template <class _A, class _B>
pair(_A, _B) -> pair<_A, _B>;
template <class _A, class _B>
constexpr pair<_A, _B> make_pair(_A a, _B b) {
  return pair<_A, _B>(a, b);
}
template <class _A, class _B>
constexpr bool operator==(const pair<_A, _B>& x, const pair<_A, _B>& y) {
  return x.first == y.first && x.second == y.second;
}
template <class _A, class _B>
constexpr bool operator!=(const pair<_A, _B>& x, const pair<_A, _B>& y) {
  return !(x == y);
}
template <class _A, class _B>
constexpr bool operator<(const pair<_A, _B>& x, const pair<_A, _B>& y) {
  return x.first < y.first || (!(y.first < x.first) && x.second < y.second);
}

template <class _T, class _U = _T>
constexpr _T exchange(_T& place, _U&& value) {
  _T before = static_cast<_T&&>(place);
  place = static_cast<_U&&>(value);
  return before;
}
template <class _T>
constexpr const _T& as_const(_T& x) {
  return x;
}

template <class _T, _T... values>
struct integer_sequence {
  typedef _T value_type;
  static constexpr decltype(sizeof(0)) size() { return sizeof...(values); }
};
template <decltype(sizeof(0))... values>
using index_sequence = integer_sequence<decltype(sizeof(0)), values...>;
namespace detail {
template <class _T, decltype(sizeof(0)) n, _T... values>
struct sequence_of : sequence_of<_T, n - 1, _T(n - 1), values...> {};
template <class _T, _T... values>
struct sequence_of<_T, 0, values...> {
  typedef integer_sequence<_T, values...> type;
};
}  // namespace detail
template <class _T, _T n>
using make_integer_sequence = typename detail::sequence_of<_T, n>::type;
template <decltype(sizeof(0)) n>
using make_index_sequence = make_integer_sequence<decltype(sizeof(0)), n>;
template <class... _T>
using index_sequence_for = make_index_sequence<sizeof...(_T)>;

}  // namespace std
