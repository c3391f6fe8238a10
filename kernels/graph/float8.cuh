// 8-bit floats, for the graphs that have them. What is too large becomes infinity, or NaN where
// there is none, as in the evaluation of graphs: nothing saturates.
#include <cuda_fp8.h>

DEVICE __nv_fp8_e4m3 float8_e4m3(float v) {
  __nv_fp8_e4m3 narrow;
  narrow.__x = __nv_cvt_float_to_fp8(v, __NV_NOSAT, __NV_E4M3);
  return narrow;
}
DEVICE __nv_fp8_e5m2 float8_e5m2(float v) {
  __nv_fp8_e5m2 narrow;
  narrow.__x = __nv_cvt_float_to_fp8(v, __NV_NOSAT, __NV_E5M2);
  return narrow;
}
template <class From>
DEVICE void store(__nv_fp8_e4m3& to, From v) {
  to = float8_e4m3((float)v);
}
template <class From>
DEVICE void store(__nv_fp8_e5m2& to, From v) {
  to = float8_e5m2((float)v);
}
