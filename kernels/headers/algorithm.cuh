// <algorithm>, as far as a device compiler takes the host's: what is constexpr.
#pragma once
namespace std {

template <class T, class Less>
constexpr const T& min(const T& a, const T& b, Less less) {
  return less(b, a) ? b : a;
}
template <class T, class Less>
constexpr const T& max(const T& a, const T& b, Less less) {
  return less(a, b) ? b : a;
}
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T>
constexpr const T& clamp(const T& x, const T& low, const T& high) {
  return x < low ? low : high < x ? high : x;
}
template <class T>
constexpr void swap(T& a, T& b) {
  T kept = static_cast<T&&>(a);
  a = static_cast<T&&>(b);
  b = static_cast<T&&>(kept);
}

}  // namespace std
