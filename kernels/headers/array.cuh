// <array>
#pragma once
namespace std {

template <class _T, decltype(sizeof(0)) n>
struct array {
  typedef _T value_type;
  _T elements[n > 0 ? n : 1];
  constexpr _T& operator[](decltype(sizeof(0)) i) { return elements[i]; }
  constexpr const _T& operator[](decltype(sizeof(0)) i) const { return elements[i]; }
  constexpr _T* data() { return elements; }
  constexpr const _T* data() const { return elements; }
  constexpr _T* begin() { return elements; }
  constexpr const _T* begin() const { return elements; }
  constexpr _T* end() { return elements + n; }
  constexpr const _T* end() const { return elements + n; }
  constexpr _T& front() { return elements[0]; }
  constexpr _T& back() { return elements[n - 1]; }
  static constexpr decltype(sizeof(0)) size() { return n; }
  static constexpr bool empty() { return n == 0; }
  constexpr void fill(const _T& value) {
    for (decltype(sizeof(0)) i = 0; i < n; ++i) elements[i] = value;
  }
};
template <class _T, class... _U>
array(_T, _U...) -> array<_T, 1 + sizeof...(_U)>;

}  // namespace std
