// The scalar operators of graphs that CUDA lacks, or has with another meaning
// (atunner/graph/scalar_op.def). For float and double alike; integers wrap, and nothing traps.
template <class T>
DEVICE bool is_nan(T v) {
  return v != v;
}
DEVICE bool is_inf(float v) { return fabsf(v) == __int_as_float(0x7f800000); }
DEVICE bool is_inf(double v) { return fabs(v) == __longlong_as_double(0x7ff0000000000000ll); }

DEVICE float magnitude(float v) { return fabsf(v); }
DEVICE double magnitude(double v) { return fabs(v); }
template <class T>
DEVICE T magnitude(T v) {
  return v < 0 ? -v : v;
}
template <class T>
DEVICE T sign(T v) {
  return v > 0 ? T(1) : v < 0 ? T(-1) : v;
}

/// One less where the quotient was rounded up: then the remainder has the wrong sign.
template <class T>
DEVICE T floored(T a, T b, T quotient) {
  const T rest = is_inf(b) ? a : fma(-quotient, b, a);
  return b == 0 ? quotient : quotient - T(rest != 0 && (rest < 0) != (b < 0)) + (a - a);
}
DEVICE float floor_div(float a, float b) { return floored(a, b, floorf(a / b)); }
DEVICE double floor_div(double a, double b) { return floored(a, b, floor(a / b)); }
template <class T>
DEVICE T floor_div(T a, T b) {
  if (b == 0) return 0;
  if (b == T(-1)) return T(0) - a;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
template <class T>
DEVICE T with_sign_of(T rest, T b) {
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
DEVICE float floor_mod(float a, float b) { return with_sign_of(fmodf(a, b), b); }
DEVICE double floor_mod(double a, double b) { return with_sign_of(fmod(a, b), b); }
template <class T>
DEVICE T floor_mod(T a, T b) {
  return b == 0 || b == T(-1) ? T(0) : with_sign_of(T(a % b), b);
}

template <class T>
DEVICE T shift_left(T a, T b) {
  return b < 0 || b > 63 ? T(0) : T((long long)((unsigned long long)a << b));
}
template <class T>
DEVICE T shift_right(T a, T b) {
  return T((long long)a >> (b < 0 || b > 63 ? 63 : b));
}

template <class T>
DEVICE T sigmoid(T v) {
  return T(1) / (T(1) + exp(-v));
}

/// Reflection, recurrence up to 10, asymptotic series (Abramowitz and Stegun 6.3).
template <class T>
DEVICE T digamma(T a) {
  T shift = 0;
  if (a <= 0) {
    if (a == floor(a)) return a == 0 ? T(-1) / a : T(__int_as_float(0x7fc00000));
    // tan has the period π: its argument is small where its value is, beside a pole
    const T fraction = a - rint(a);
    shift = T(-3.141592653589793) / tan(T(3.141592653589793) * fraction);
    a = T(1) - a;
  }
  for (; a < 10; a += 1) shift -= T(1) / a;
  const T s = T(1) / (a * a);
  return shift + log(a) - T(0.5) / a -
         s * (T(1.0 / 12) -
              s * (T(1.0 / 120) - s * (T(1.0 / 252) - s * (T(1.0 / 240) - s * T(1.0 / 132)))));
}

/// [0, 1) from word 0 of Philox4x32-10 with this key and counter.
DEVICE float uniform(long long key, long long counter) {
  unsigned c0 = (unsigned)counter, c1 = (unsigned)((unsigned long long)counter >> 32), c2 = 0,
           c3 = 0;
  unsigned k0 = (unsigned)key, k1 = (unsigned)((unsigned long long)key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const unsigned high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return (float)(c0 >> 8) * 5.9604644775390625e-8f;
}

/// Truncates; cvt saturates, and makes 0 of NaN.
DEVICE long long to_whole(float v) { return __float2ll_rz(v); }
DEVICE long long to_whole(double v) { return __double2ll_rz(v); }
