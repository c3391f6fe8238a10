// <algorithm>, as far as a device compiler takes the host's: what is constexpr.
#pragma once
namespace std {

template <class _T, class _Less>
constexpr const _T& min(const _T& a, const _T& b, _Less less) {
  return less(b, a) ? b : a;
}
template <class _T, class _Less>
constexpr const _T& max(const _T& a, const _T& b, _Less less) {
  return less(a, b) ? b : a;
}
template <class _T>
constexpr const _T& min(const _T& a, const _T& b) {
  return b < a ? b : a;
}
template <class _T>
constexpr const _T& max(const _T& a, const _T& b) {
  return a < b ? b : a;
}
template <class _T>
constexpr const _T& clamp(const _T& x, const _T& low, const _T& high) {
  return x < low ? low : high < x ? high : x;
}
template <class _T>
constexpr void swap(_T& a, _T& b) {
  _T kept = static_cast<_T&&>(a);
  a = static_cast<_T&&>(b);
  b = static_cast<_T&&>(kept);
}

}  // namespace std
