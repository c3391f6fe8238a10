// Conversion between elements in memory and the values of the arithmetic; 16-bit types where they
// are known.
#define DEVICE __device__ __forceinline__

template <class To, class From>
DEVICE To load(const From& v) {
  return (To)v;
}
template <class To, class From>
DEVICE void store(To& to, From v) {
  to = (To)v;
}
#ifdef __CUDA_FP16_TYPES_EXIST__
DEVICE float to_real(__half v) { return __half2float(v); }
DEVICE float to_real(__nv_bfloat16 v) { return __bfloat162float(v); }
template <>
DEVICE float load(const __half& v) {
  return to_real(v);
}
template <>
DEVICE float load(const __nv_bfloat16& v) {
  return to_real(v);
}
template <>
DEVICE double load(const __half& v) {
  return to_real(v);
}
template <>
DEVICE double load(const __nv_bfloat16& v) {
  return to_real(v);
}
template <class From>
DEVICE void store(__half& to, From v) {
  to = __float2half_rn((float)v);
}
template <class From>
DEVICE void store(__nv_bfloat16& to, From v) {
  to = __float2bfloat16_rn((float)v);
}
#endif

/// NaN wins.
template <class T>
DEVICE T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
template <class T>
DEVICE T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
#if __CUDA_ARCH__ >= 800
template <>
DEVICE float minimum(float a, float b) {
  float c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
template <>
DEVICE float maximum(float a, float b) {
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
#endif
