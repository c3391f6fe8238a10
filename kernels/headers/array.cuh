// <array>
#pragma once
namespace std {

template <class T, decltype(sizeof(0)) n>
struct array {
  typedef T value_type;
  T elements[n > 0 ? n : 1];
  constexpr T& operator[](decltype(sizeof(0)) i) { return elements[i]; }
  constexpr const T& operator[](decltype(sizeof(0)) i) const { return elements[i]; }
  constexpr T* data() { return elements; }
  constexpr const T* data() const { return elements; }
  constexpr T* begin() { return elements; }
  constexpr const T* begin() const { return elements; }
  constexpr T* end() { return elements + n; }
  constexpr const T* end() const { return elements + n; }
  constexpr T& front() { return elements[0]; }
  constexpr T& back() { return elements[n - 1]; }
  static constexpr decltype(sizeof(0)) size() { return n; }
  static constexpr bool empty() { return n == 0; }
  constexpr void fill(const T& value) {
    for (decltype(sizeof(0)) i = 0; i < n; ++i) elements[i] = value;
  }
};
template <class T, class... U>
array(T, U...) -> array<T, 1 + sizeof...(U)>;

}  // namespace std
