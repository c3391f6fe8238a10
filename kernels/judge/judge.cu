// The judge's own device code: fills inputs, fingerprints and compares outputs. It runs on every
// Device, real or virtual. Data types arrive as numbers, the positions in dtype.def. It is compiled
// behind judge_arguments.h and an enumeration of input_family.def.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned long long u64;

enum DTypeCode {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,
  kE4M3,
  kE5M2
};

__device__ bool is_float(int dtype) { return dtype < kI8 || dtype > kBool; }

/// 8-bit floats through halves: e5m2 is a half's upper byte, and e4m3 times 2^-8 has its exponent's
/// bits in a half's place.
__device__ float from_e5m2(unsigned char v) {
  return __half2float(__ushort_as_half((unsigned short)(v << 8)));
}
__device__ float from_e4m3(unsigned char v) {
  if ((v & 0x7f) == 0x7f) return __int_as_float(0x7fc00000);
  return 256.0f *
         __half2float(__ushort_as_half((unsigned short)((v & 0x80) << 8 | (v & 0x7f) << 7)));
}
/// The upper bits of a half's magnitude, to nearest even, at most `largest`; NaN stays.
__device__ unsigned char narrow_half(float v, int dropped, int largest) {
  const unsigned bits = __half_as_ushort(__float2half_rn(v)), magnitude = bits & 0x7fff;
  const unsigned rounded = (magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1)) >>
                           dropped;
  const unsigned kept = magnitude > 0x7c00 ? 0x7f : rounded > largest ? largest : rounded;
  return (unsigned char)((bits >> 8 & 0x80) | kept);
}

/// SplitMix64's mixer, as base/random.h has it.
__device__ u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// (0, 1], 24 bits: never 0, so its logarithm is finite.
__device__ float unit(unsigned bits) { return ((bits >> 8) + 1u) * 5.9604644775390625e-8f; }

__device__ float normal(u64 random) {
  return sqrtf(-2.0f * logf(unit((unsigned)random))) *
         cospif(2.0f * unit((unsigned)(random >> 32)));
}

__device__ void store(int dtype, void* data, u64 i, double value) {
  switch (dtype) {
    case kF64:
      ((double*)data)[i] = value;
      break;
    case kF32:
      ((float*)data)[i] = (float)value;
      break;
    case kF16:
      ((__half*)data)[i] = __float2half_rn((float)value);
      break;
    case kBF16:
      ((__nv_bfloat16*)data)[i] = __float2bfloat16_rn((float)value);
      break;
    case kI8:
    case kU8:
      ((signed char*)data)[i] = (signed char)(long long)value;
      break;
    case kBool:
      ((signed char*)data)[i] = value != 0;
      break;
    case kI16:
    case kU16:
      ((short*)data)[i] = (short)(long long)value;
      break;
    case kI32:
    case kU32:
      ((int*)data)[i] = (int)(long long)value;
      break;
    case kE4M3:
      ((unsigned char*)data)[i] = narrow_half((float)value / 256, 7, 0x7e);
      break;
    case kE5M2:
      ((unsigned char*)data)[i] = narrow_half((float)value, 8, 0x7b);
      break;
    default:
      ((long long*)data)[i] = (long long)value;
  }
}

__device__ double load(int dtype, const void* data, u64 i) {
  switch (dtype) {
    case kF64:
      return ((const double*)data)[i];
    case kF32:
      return ((const float*)data)[i];
    case kF16:
      return __half2float(((const __half*)data)[i]);
    case kBF16:
      return __bfloat162float(((const __nv_bfloat16*)data)[i]);
    case kI8:
      return ((const signed char*)data)[i];
    case kI16:
      return ((const short*)data)[i];
    case kI32:
      return ((const int*)data)[i];
    case kI64:
      return (double)((const long long*)data)[i];
    case kU8:
    case kBool:
      return ((const unsigned char*)data)[i];
    case kU16:
      return ((const unsigned short*)data)[i];
    case kU32:
      return ((const unsigned*)data)[i];
    case kE4M3:
      return from_e4m3(((const unsigned char*)data)[i]);
    case kE5M2:
      return from_e5m2(((const unsigned char*)data)[i]);
    default:
      return (double)((const u64*)data)[i];
  }
}

/// Smallest positive normal number of the type.
__device__ float smallest_normal(int dtype) {
  return dtype == kE4M3                    ? 0.015625f
         : dtype == kF16 || dtype == kE5M2 ? 6.103515625e-5f
                                           : 1.17549435e-38f;
}

/// A mean that is large beside 1 and leaves the type a few bits for what is around it.
__device__ float large_mean(int dtype) {
  switch (dtype) {
    case kF16:
      return 256.0f;
    case kBF16:
      return 32.0f;
    case kE4M3:
    case kE5M2:
      return 4.0f;
    default:
      return 10000.0f;
  }
}

/// A power of two whose square is beyond the type's range, but not its products with some numbers
/// of elements. Values are floats, so that no double's square is.
__device__ float huge_scale(int dtype) {
  switch (dtype) {
    case kF16:
    case kE5M2:
      return 4096.0f;
    case kE4M3:
      return 32.0f;
    default:
      return 1.2089258196146292e24f;  // 2^80
  }
}

/// Either sign, and a magnitude from 1e-3 up to 1e6, or to what the type holds: every decade with
/// equal probability; a quarter of those from 1 on is whole. Products and quotients of exact powers
/// of ten give the same bits on every device.
__device__ float decades(int dtype, u64 random) {
  const int last = dtype == kE4M3 ? 1 : dtype == kF16 || dtype == kE5M2 ? 3 : 5;
  const int decade = (int)((random >> 40) % (u64)(last + 4)) - 3;
  float power = 1.0f;
  for (int k = decade < 0 ? -decade : decade; k > 0; --k) power *= 10.0f;
  const float digits = 1.0f + 9.0f * unit((unsigned)random);
  const float value = decade < 0 ? digits / power : digits * power;
  const float some = (random >> 33) % 4 == 0 && decade >= 0 ? truncf(value) : value;
  return random >> 63 ? -some : some;
}

/// 1 and numbers close to it: 2^-4 to 2^-20 away (16-bit types: 2^-9, 8-bit types: 2^-3).
__device__ float near_one(int dtype, float z, u64 random) {
  const bool narrow = dtype == kF16 || dtype == kBF16;
  const bool tiny = dtype == kE4M3 || dtype == kE5M2;
  const unsigned steps = narrow ? 6 : tiny ? 2 : 17;
  return 1.0f + z / (float)((tiny ? 4 : 16) << ((random >> 33) % steps));
}

/// Normal, with an infinity of either sign in one of `period` elements.
__device__ float with_infinities(float z, u64 elements, u64 random) {
  const u64 sixteenth = elements / 16;
  const u64 period = sixteenth < 8 ? 8 : sixteenth;
  if ((random >> 16) % period != 0) return z;
  return __int_as_float(random & 1 ? 0x7f800000 : (int)0xff800000);
}

/// One element of an input family; `of.variant` is the argument's position, so that operands differ
/// in role.
__device__ float family_value(const judge::Fill& of, u64 i) {
  const u64 random = mix(mix(of.seed) + i);
  const float z = normal(random);
  const u64 other = mix(random);
  const float u = unit((unsigned)(other >> 11));
  switch (of.family) {
    case kUniform:
      return u;
    case kMixedSign:
      return 2.0f * u - 1.0f;
    case kHeavyTail:
      return fminf(fmaxf(z * rsqrtf(unit((unsigned)(other >> 3))), -256.0f), 256.0f);
    case kLargeLogits:
      return 40.0f * z;  // exp of them overflows
    case kNeedle:
      return 0.01f * z;  // the spike is added by the caller
    case kCancelling: {
      if (of.variant & 1) return 1.0f + 0.015625f * z;
      // both of a pair share it
      const float big = 8.0f + normal(mix(mix(of.seed) + (i & ~1ull)));
      return (i & 1) ? -big + 0.125f * z : big;
    }
    case kDenormal:
      return z * smallest_normal(of.dtype);
    case kTies: {
      const float few[] = {-2.0f, -0.5f, 0.0f, 0.75f, 1.5f};
      return few[other % 5];
    }
    case kLargeMean:
      return large_mean(of.dtype) + z;
    case kDecades:
      return decades(of.dtype, other);
    case kNearOne:
      return near_one(of.dtype, z, other);
    case kHuge:
      return z * huge_scale(of.dtype);
    case kInfinities:
      return with_infinities(z, of.elements, other);
    case kZeros:
      return 0.0f;
    case kWhole:
      // halves to 256ths: a small multiple of some is a half
      return 0.5f / (float)(1 << ((other >> 40) & 7)) * (float)((int)((other >> 20) % 129) - 64);
    case kMonotone:
      return (float)(-8.0 + 16.0 * (double)i / (double)of.elements);
    case kFalling:
      return (float)(-128.0 - 128.0 * (double)i / (double)of.elements);
    default:
      return z;
  }
}

__device__ bool is_signed(int dtype) { return dtype >= kI8 && dtype <= kI64; }
__device__ int bits_of(int dtype) {
  switch (dtype) {
    case kI8:
    case kU8:
      return 8;
    case kI16:
    case kU16:
      return 16;
    case kI32:
    case kU32:
      return 32;
    case kBool:
      return 1;
    default:
      return 64;
  }
}

/// The least, the largest, 0, ±1, ±2, powers of two and their neighbours, of either sign. Modulo
/// 2^bits, so that one formula serves signed and unsigned types.
__device__ u64 edge_integer(int bits, u64 random) {
  const u64 near = (random >> 8) % 3 - 1;  // -1, 0 or 1
  const u64 power = 1ull << (random >> 16) % (unsigned)bits;
  switch (random % 8) {
    case 0:
      return (1ull << (bits - 1)) - 2 + (random >> 8) % 4;  // the largest two and the least two
    case 1:
      return near;
    case 2:
      return ~0ull - 1 + near;
    case 3:
    case 4:
      return -(power + near);
    default:
      return power + near;
  }
}

/// One integer of a family, as its two's complement. Types keep their low bits.
__device__ u64 integer_value(const judge::Fill& of, u64 i) {
  const u64 random = mix(mix(of.seed) + i);
  const int bits = bits_of(of.dtype);
  switch (of.family) {
    case kZeros:
      return 0;
    case kTies:
      return random % 3 - (is_signed(of.dtype) ? 1 : 0);
    case kMonotone: {  // ascending, over a thousand either way or the type's range
      const double half = bits == 8 ? 100.0 : 1000.0;
      const double share = (double)i / (double)of.elements;
      const double value = is_signed(of.dtype) ? half * (2 * share - 1) : 2 * half * share;
      return (u64)(long long)value;
    }
    case kFalling: {  // all of one sign, descending
      const double most = bits == 8 ? 100.0 : 1000.0;
      const double value = 1.0 + (most - 1.0) * (double)i / (double)of.elements;
      return (u64)(long long)(is_signed(of.dtype) ? -value : most - value + 1.0);
    }
    case kEdges:
      return edge_integer(bits, random);
    case kDecades: {  // every length in bits with equal probability
      const u64 magnitude = mix(random) >> (63 - (random >> 8) % (unsigned)bits);
      return is_signed(of.dtype) && random & 1 ? -magnitude : magnitude;
    }
    case kMined:  // small, as without a family
      return is_signed(of.dtype) ? random % 17 - 8 : random % 9;
    default:
      return mix(random);
  }
}

/// Where in [0, 1] of its stated range an element is.
__device__ double share_of_range(const judge::Fill& of, u64 i) {
  const u64 random = mix(mix(of.seed) + i);
  const double u = (double)(random >> 11) * 1.1102230246251565e-16;
  const bool flipped = random & 1;
  switch (of.family) {
    case kTies:
      return (double)(mix(random) % 4) / 3;
    case kEdges:  // half at either end
      return random & 2 ? u : flipped;
    case kDecades: {  // close to either end
      double distance = u;
      for (u64 k = mix(random) % 7; k > 0; --k) distance /= 10;
      return flipped ? 1 - distance : distance;
    }
    case kMonotone:
      return (double)i / (double)of.elements;
    case kFalling:
      return 1.0 - (double)i / (double)of.elements;
    default:
      return u;
  }
}

__device__ double ranged_value(const judge::Fill& of, u64 i) {
  const double value = of.low + (of.high - of.low) * share_of_range(of, i);
  return fmin(is_float(of.dtype) ? value : floor(value), of.last);
}

/// Stores the low bits of an integer, or the bits of a float.
__device__ void store_bits(int dtype, void* data, u64 i, u64 bits) {
  switch (dtype) {
    case kF64:
    case kI64:
    case kU64:
      ((u64*)data)[i] = bits;
      break;
    case kF32:
    case kI32:
    case kU32:
      ((unsigned*)data)[i] = (unsigned)bits;
      break;
    case kF16:
    case kBF16:
    case kI16:
    case kU16:
      ((unsigned short*)data)[i] = (unsigned short)bits;
      break;
    case kBool:
      ((unsigned char*)data)[i] = (unsigned char)(bits & 1);
      break;
    default:
      ((unsigned char*)data)[i] = (unsigned char)bits;
  }
}

/// One in this many elements is a mined value.
constexpr unsigned kMinedPeriod = 4;

extern "C" __global__ void judge_fill(judge::Fill of) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  const u64* mined = (const u64*)of.mined;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < of.elements; i += stride) {
    const u64 random = mix(~of.seed + i);
    if (of.mined_count > 0 && random % kMinedPeriod == 0) {
      store_bits(of.dtype, (void*)of.data, i, mined[(random >> 8) % (unsigned)of.mined_count]);
      continue;
    }
    if (of.kind == judge::kFillInteger) {
      store_bits(of.dtype, (void*)of.data, i, integer_value(of, i));
      continue;
    }
    double value;
    if (of.kind == judge::kFillFamily) {
      value = family_value(of, i);
    } else if (of.kind == judge::kFillConstant) {
      value = of.low;
    } else if (of.kind == judge::kFillIota) {
      value = (double)i;
    } else if (of.kind == judge::kFillPermuted) {
      value = (double)((i * (u64)of.low + (u64)of.high) % of.elements);
    } else {
      value = ranged_value(of, i);
    }
    if (i == of.spike_at) value = of.spike_value;
    store(of.dtype, (void*)of.data, i, value);
  }
}

/// Flips the last bit of a number; zero, the smallest number and infinity stay.
__device__ unsigned flipped(unsigned v) {
  const unsigned magnitude = v & 0x7fffffffu;
  return magnitude > 1 && magnitude < 0x7f800000u ? v ^ 1u : v;
}
__device__ unsigned short flipped(unsigned short v, unsigned short infinity) {
  const unsigned short magnitude = v & 0x7fff;
  return magnitude > 1 && magnitude < infinity ? v ^ 1 : v;
}
__device__ u64 flipped(u64 v) {
  const u64 magnitude = v & 0x7fffffffffffffffull;
  return magnitude > 1 && magnitude < 0x7ff0000000000000ull ? v ^ 1ull : v;
}

__device__ unsigned short infinity_of(int dtype) { return dtype == kF16 ? 0x7c00 : 0x7f80; }

/// Flips the last bit of three in four float32 or float64, and of one in eight 16-bit floats,
/// picked by `seed`; done twice, it undoes itself.
extern "C" __global__ void judge_nudge(void* data, int dtype, u64 n, u64 seed) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const u64 random = mix(mix(seed) + i);
    const bool narrow = dtype == kF16 || dtype == kBF16;
    if (narrow ? (random & 7) != 0 : (random & 3) == 0) continue;
    if (dtype == kF64) {
      ((u64*)data)[i] = flipped(((u64*)data)[i]);
    } else if (narrow) {
      ((unsigned short*)data)[i] = flipped(((unsigned short*)data)[i], infinity_of(dtype));
    } else {
      ((unsigned*)data)[i] = flipped(((unsigned*)data)[i]);
    }
  }
}

/// A magnitude's bits some units further, unless it is zero or would become so, or is beyond
/// numbers.
__device__ u64 shifted(u64 v, u64 sign, u64 infinity, int units) {
  const u64 magnitude = v & ~sign;
  const u64 further = magnitude + (u64)(long long)units;
  const bool stays = magnitude == 0 || magnitude >= infinity || further - 1 >= infinity - 1;
  return stays ? v : v & sign | further;
}

/// Moves float32 and float64 by up to two units in the last place either way, and half of all
/// 16-bit floats by one.
extern "C" __global__ void judge_shift(void* data, int dtype, u64 n, u64 seed) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const u64 random = mix(mix(seed) + i);
    if (dtype == kF64) {
      u64& v = ((u64*)data)[i];
      v = shifted(v, 1ull << 63, 0x7ffull << 52, (int)(random % 5) - 2);
    } else if (dtype == kF32) {
      unsigned& v = ((unsigned*)data)[i];
      v = (unsigned)shifted(v, 1ull << 31, 0x7f800000ull, (int)(random % 5) - 2);
    } else {
      unsigned short& v = ((unsigned short*)data)[i];
      const int units = (random & 3) == 0 ? 1 : (random & 3) == 1 ? -1 : 0;
      v = (unsigned short)shifted(v, 1ull << 15, infinity_of(dtype), units);
    }
  }
}

/// Rounds floats to the next narrower type: float64 to float32, float32 to TF32 (10 bits after the
/// point, ties away).
extern "C" __global__ void judge_narrow(void* data, int dtype, u64 n) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    if (dtype == kF64) {
      ((double*)data)[i] = (float)((double*)data)[i];
    } else {
      const unsigned bits = ((unsigned*)data)[i];
      const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
      if (finite) ((unsigned*)data)[i] = (bits + 0x1000u) & ~0x1fffu;
    }
  }
}

/// Order-independent 64-bit fingerprint: partial[block] = sum of mix(word, position). The host adds
/// the blocks' sums.
extern "C" __global__ void judge_fingerprint(const void* data, u64 bytes, u64* partial) {
  const u64 words = bytes / 4;
  const unsigned* word = (const unsigned*)data;
  const unsigned char* byte = (const unsigned char*)data;
  u64 sum = 0;
  const u64 stride = (u64)gridDim.x * blockDim.x;
  const u64 start = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (u64 i = start; i < words; i += stride) sum += mix(word[i] + (i << 32) + i);
  for (u64 i = words * 4 + start; i < bytes; i += stride) sum += mix(byte[i] + (i << 32) + ~i);
  __shared__ u64 sums[256];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = 128; half > 0; half >>= 1) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}

/// One block of 256 threads per zone: first[zone] = offset of the first of its bytes that is not
/// `byte`, ~0 when all are.
extern "C" __global__ void judge_guards(judge::GuardZones zones, u64 bytes, int byte, u64* first) {
  const unsigned char* zone = (const unsigned char*)zones.at[blockIdx.x];
  u64 changed = ~0ull;
  for (u64 i = threadIdx.x; i < bytes && changed == ~0ull; i += 256)
    if (zone[i] != byte) changed = i;
  __shared__ u64 found[256];
  found[threadIdx.x] = changed;
  __syncthreads();
  for (unsigned half = 128; half > 0; half >>= 1) {
    if (threadIdx.x < half && found[threadIdx.x + half] < found[threadIdx.x])
      found[threadIdx.x] = found[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) first[blockIdx.x] = found[0];
}

/// Hides or shows a reference: XOR with a keyed stream. The same call does both.
extern "C" __global__ void judge_mask(u64* reference, u64 n, u64 key) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    reference[i] ^= mix(key + i);
}

/// Differences from the reference that a correct kernel may have because a data-dependent decision
/// (a comparison, argmax or rounding) may go the other way: `slots` of them per element, 0 where
/// there are fewer; with two slots the least and the largest.
struct Choices {
  double* of;
  int slots;
};
constexpr int kRange = 2;  // slots

__device__ void note(const Choices& choices, u64 i, double difference) {
  double* slot = choices.of + i * choices.slots;
  if (choices.slots == kRange) {
    slot[0] = fmin(slot[0], difference);
    slot[1] = fmax(slot[1], difference);
    return;
  }
  for (int s = 0; s < choices.slots && difference != 0; ++s) {
    if (slot[s] == 0) slot[s] = difference;
    if (slot[s] == difference) return;
  }
}

/// The distance of a difference from the nearest one that such a decision explains. Values between
/// the observed ones are allowed, and half as much beyond them, for numbers but not for indices.
__device__ double beyond_choices(const Choices& choices, u64 i, double difference) {
  const double* slot = choices.of + i * choices.slots;
  double least = fabs(difference);
  if (choices.slots == kRange) {
    const double room = 0.5 * (slot[1] - slot[0]);
    return fmin(least, fmax(0.0, fmax(slot[0] - room - difference, difference - slot[1] - room)));
  }
  for (int s = 0; s < choices.slots; ++s) least = fmin(least, fabs(difference - slot[s]));
  return least;
}

__device__ bool may_differ(const Choices& choices, u64 i, double more_than) {
  bool may = false;
  for (int s = 0; s < choices.slots; ++s)
    may |= fabs(choices.of[i * choices.slots + s]) > more_than;
  return may;
}

/// Notes what a run has whose choices are its own; of floats where `fixed`, the same run with the
/// plain kernel's choices, has something else.
extern "C" __global__ void judge_note(const void* data, const void* fixed, int dtype,
                                      const u64* reference, u64 n, u64 key, double* of, int slots) {
  const Choices choices = {of, slots};
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const double r = __longlong_as_double(
        (long long)(key ? reference[i] ^ mix(key + i) : reference[i]));
    const double y = load(dtype, data, i), z = load(dtype, fixed, i);
    if (isfinite(r) && isfinite(y) && (!is_float(dtype) || y != z)) note(choices, i, y - r);
    if (isfinite(r) && isfinite(z) && (!is_float(dtype) || y != z)) note(choices, i, z - r);
  }
}

__device__ int size_of(int dtype) {
  switch (dtype) {
    case kF64:
    case kI64:
    case kU64:
      return 8;
    case kF32:
    case kI32:
    case kU32:
      return 4;
    case kF16:
    case kBF16:
    case kI16:
    case kU16:
      return 2;
    default:
      return 1;
  }
}

__device__ u64 raw_bits(int size, const void* data, u64 i) {
  switch (size) {
    case 8:
      return ((const u64*)data)[i];
    case 4:
      return ((const unsigned*)data)[i];
    case 2:
      return ((const unsigned short*)data)[i];
    default:
      return ((const unsigned char*)data)[i];
  }
}

/// The fields of a float: of `bits`, the `mantissa` lowest are its fraction.
struct FloatFields {
  int bits, mantissa;
};
__device__ FloatFields fields_of(int dtype) {
  switch (dtype) {
    case kF64:
      return {64, 52};
    case kF16:
      return {16, 10};
    case kBF16:
      return {16, 7};
    case kE4M3:
      return {8, 3};
    case kE5M2:
      return {8, 2};
    default:
      return {32, 23};
  }
}

/// A mixer of 32 bits, a quarter of the work of `mix` (C. Wellons' lowbias32).
__device__ unsigned mix32(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// The random bits of a poisoned element: what kind of number it is, and its digits. Elements of
/// up to 32 bits are drawn with 32 bits, because every sample and every launch of the judge fills
/// all outputs.
struct PoisonDraw {
  u64 kind, digits;  // the digits begin at the top
};
__device__ PoisonDraw draw_poison(int size, u64 i, judge::Poison poison) {
  const u64 key = mix(poison.key), flip = poison.flipped ? 1 : 0;
  if (size == 8) {
    const u64 kind = mix(key + i);
    return {kind, mix(kind + flip)};
  }
  const unsigned low = (unsigned)key, high = (unsigned)(key >> 32);
  const unsigned at = ((unsigned)i + low) ^ (unsigned)(i >> 32) * 0x9e3779b9u;
  const unsigned kind = mix32(at);
  return {kind, (u64)mix32((kind ^ high) + (unsigned)flip) << 32};
}

/// The bits of a poisoned element: a random number that an unwritten element shows, whatever a
/// kernel does with it.
/// - Half of the floats are large: no sum, and no minimum or maximum of their sign, absorbs them.
///   A quarter is of ordinary size, a quarter of any size, and all are finite.
/// - A quarter of the integers is below 128, the others are any.
/// - Flipped, every element differs: floats have the other sign, integers another parity.
__device__ u64 poison_bits(int dtype, u64 i, judge::Poison poison) {
  const int size = size_of(dtype);
  const PoisonDraw draw = draw_poison(size, i, poison);
  const u64 flip = poison.flipped ? 1 : 0;
  if (!is_float(dtype)) {
    const u64 all = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
    const u64 kept = draw.kind & 0xc ? all & ~1ull : 0x7eull;
    return draw.digits >> 8 * (8 - size) & kept | ((draw.kind & 1) ^ flip);
  }
  const FloatFields fields = fields_of(dtype);
  const int most = (1 << (fields.bits - 1 - fields.mantissa)) - 2, bias = most / 2;
  const int ordinary = bias - 1 < 12 ? bias - 1 : 12;
  const int kind = (int)(draw.kind & 3);
  const int low = kind < 2 ? bias + bias / 2 : kind == 2 ? bias - ordinary : 1;
  const int high = kind == 2 ? bias + ordinary : most;
  const unsigned top = (unsigned)(draw.digits >> 48);
  const u64 exponent = (u64)(low + (int)(top * (unsigned)(high - low + 1) >> 16));
  const u64 fraction = draw.digits >> (size == 8 ? 0 : 32) & ((1ull << fields.mantissa) - 1);
  const u64 sign = (draw.kind >> 2 & 1) ^ flip;
  return sign << (fields.bits - 1) | exponent << fields.mantissa | fraction;
}

/// `data` begins with element `first` of what was poisoned.
__device__ bool is_poison(int dtype, const void* data, u64 i, judge::Poison poison, u64 first = 0) {
  return raw_bits(size_of(dtype), data, i) == poison_bits(dtype, first + i, poison);
}

/// Fills `n` elements with the poison.
extern "C" __global__ void judge_poison(void* data, int dtype, u64 n, judge::Poison poison) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  const int size = size_of(dtype);
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const u64 bits = poison_bits(dtype, i, poison);
    if (size == 8)
      ((u64*)data)[i] = bits;
    else if (size == 4)
      ((unsigned*)data)[i] = (unsigned)bits;
    else if (size == 2)
      ((unsigned short*)data)[i] = (unsigned short)bits;
    else
      ((unsigned char*)data)[i] = (unsigned char)bits;
  }
}

/// Compares two runs on equal inputs, bit by bit. Elements that hold its poison in either run are
/// unwritten. found = {elements that differ, the first of them
/// (initially ~0), unwritten elements}.
extern "C" __global__ void judge_same(judge::TwoRuns of, u64* found) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  const void* first = (const void*)of.first;
  const void* second = (const void*)of.second;
  const int size = size_of(of.dtype);
  u64 differing = 0, unwritten = 0, at = ~0ull;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < of.elements; i += stride) {
    if (raw_bits(size, first, i) == raw_bits(size, second, i)) continue;
    if (of.poisoned && is_poison(of.dtype, first, i, of.first_poison) &&
        is_poison(of.dtype, second, i, of.second_poison)) {
      ++unwritten;
    } else {
      ++differing;
      if (i < at) at = i;
    }
  }
  if (unwritten > 0) atomicAdd(&found[2], unwritten);
  if (differing == 0) return;
  atomicAdd(&found[0], differing);
  atomicMin(&found[1], at);
}

__device__ bool is_wide_integer(int dtype) { return dtype == kI64 || dtype == kU64; }

/// In a reference: the kernel as given leaves this element unwritten, and so must every candidate.
constexpr u64 kLeftUnwritten = 0x7ff8a70000000001ull;

/// A reference of the outputs of a user's kernel: float64, or 64-bit integers as they are. With
/// `poisoned`, elements that hold the poison count as unwritten, and `*suspects` counts them.
extern "C" __global__ void judge_widen(const void* data, int dtype, u64 n, u64* wide, int poisoned,
                                       judge::Poison poison, u64* suspects) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    if (poisoned && is_poison(dtype, data, i, poison)) {
      wide[i] = kLeftUnwritten;
      atomicAdd(suspects, 1ull);
    } else if (is_wide_integer(dtype)) {
      wide[i] = ((const u64*)data)[i];
    } else {
      wide[i] = (u64)__double_as_longlong(load(dtype, data, i));
    }
  }
}

/// `data` comes from a second run on the same inputs, poisoned with the flipped poison. What held
/// the poison of the first run and does not hold this one was written after all: a result that
/// happens to be equal to the poison.
extern "C" __global__ void judge_confirm(const void* data, int dtype, u64 n, u64* wide,
                                         judge::Poison poison) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    if (wide[i] != kLeftUnwritten || is_poison(dtype, data, i, poison)) continue;
    wide[i] = is_wide_integer(dtype) ? ((const u64*)data)[i]
                                     : (u64)__double_as_longlong(load(dtype, data, i));
  }
}

__device__ void merge(judge::Partial& a, const judge::Partial& b) {
  a.squared_difference += b.squared_difference;
  a.squared_reference += b.squared_reference;
  a.sum_reference += b.sum_reference;
  a.squared_reference_second_half += b.squared_reference_second_half;
  a.fourth_difference += b.fourth_difference;
  a.along_reference += b.along_reference;
  a.squared_along += b.squared_along;
  a.worst = fmax(a.worst, b.worst);
  a.finite += b.finite;
  a.unwritten += b.unwritten;
  a.lost_nan += b.lost_nan;
  a.new_nonfinite += b.new_nonfinite;
  a.beyond += b.beyond;
  a.unsure += b.unsure;
  a.lost += b.lost;
  a.undetermined += b.undetermined;
  a.first_bad = a.first_bad < b.first_bad ? a.first_bad : b.first_bad;
}

/// The operands of smaller results may have been below the normal numbers of float32.
constexpr float kSurelyNormal = 1.97215226e-31f;  // 2^-102
constexpr double kLost = 0.25;                    // of |r|

/// Adds the distance of an element y from its reference r, both finite; false where it is beyond
/// the bound.
__device__ bool measure(judge::Partial& mine, const judge::Comparison& of, const Choices& choices,
                        u64 i, double y, double r, double distance) {
  const double difference = of.choice_slots ? beyond_choices(choices, i, y - r) : distance;
  mine.squared_difference += difference * difference;
  mine.squared_reference += r * r;
  mine.sum_reference += r;
  if (of.first + i >= of.total / 2) mine.squared_reference_second_half += r * r;
  const double along = copysign(difference, y - r) * r;
  mine.fourth_difference += difference * difference * difference * difference;
  mine.along_reference += along;
  mine.squared_along += along * along;
  ++mine.finite;
  const double denominator = fabs(r) + of.scale;
  const double error = denominator > 0 ? difference / denominator : (difference > 0 ? 1e300 : 0.0);
  mine.worst = fmax(mine.worst, error);
  const bool normal = fabs(r) >= fmaxf(kSurelyNormal, smallest_normal(of.dtype));
  mine.unsure += normal && difference > of.rounding * fabs(r);
  mine.lost += normal && difference > kLost * fabs(r);
  mine.undetermined += of.choice_slots && may_differ(choices, i, of.element_bound * denominator);
  return error <= of.element_bound;
}

/// True if an error within the bound may have carried y beyond the type's largest number, or kept
/// it below, where r is close to it. An infinite r is met by itself only, in 8-bit floats also by
/// the largest number, at which conversions saturate.
__device__ bool at_the_edge(const judge::Comparison& of, double y, double r) {
  if (isinf(r)) {
    const bool saturates = of.dtype == kE4M3 || of.dtype == kE5M2;
    return y == r || (saturates && y == copysign(of.largest, r));
  }
  const double error = of.element_bound < 0.25 ? of.element_bound * (fabs(r) + of.scale) : 0;
  return (y > 0) == (r > 0) && fabs(y) + error >= of.largest && fabs(r) + error > of.largest;
}

/// |y - r| of 64-bit integers, which is not zero unless they are equal.
__device__ double integer_distance(int dtype, u64 y, u64 r) {
  const bool less = dtype == kI64 ? (long long)y < (long long)r : y < r;
  return (double)(less ? r - y : y - r);
}

/// An element of the data and its reference.
struct Pair {
  double y, r, distance;
};
__device__ Pair pair_of(const judge::Comparison& of, u64 i, u64 bits) {
  const void* data = (const void*)of.data;
  const double y = load(of.dtype, data, i);
  if (!of.integers) {
    const double r = __longlong_as_double((long long)bits);
    return {y, r, fabs(y - r)};
  }
  const double r = of.integers == kI64 ? (double)(long long)bits : (double)bits;
  const bool exact = of.dtype == of.integers;
  return {y, r, exact ? integer_distance(of.dtype, ((const u64*)data)[i], bits) : fabs(y - r)};
}

/// True if an element that holds the poison may as well be a result, also by another choice where
/// the data decide, e.g. the other index of two equal numbers.
__device__ bool may_be_result(const judge::Comparison& of, const Pair& pair, const Choices& choices,
                              u64 i) {
  const double bound = fmin(of.element_bound, 0.25) * (fabs(pair.r) + of.scale);
  if (pair.distance == 0) return true;
  if (isinf(pair.r)) return false;
  return pair.distance <= bound ||
         (of.choice_slots && beyond_choices(choices, i, pair.y - pair.r) <= bound);
}

extern "C" __global__ void judge_compare(judge::Comparison of) {
  const Choices choices = {(double*)of.choices, of.choice_slots};
  const void* data = (const void*)of.data;
  const u64* reference = (const u64*)of.reference;
  judge::Partial mine = {};
  mine.first_bad = ~0ull;
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < of.elements; i += stride) {
    const u64 bits = of.key ? reference[i] ^ mix(of.key + i) : reference[i];
    const Pair pair = pair_of(of, i, bits);
    const double y = pair.y, r = pair.r;
    const bool left = bits == kLeftUnwritten;
    const bool poison = of.poisoned && (left || !may_be_result(of, pair, choices, i)) &&
                        is_poison(of.dtype, data, i, of.poison, of.first);
    bool bad = false;
    if (left) {
      bad = of.poisoned && !poison;
      mine.new_nonfinite += bad;
    } else if (poison) {
      bad = true;
      ++mine.unwritten;
    } else if (isnan(r)) {
      bad = !isnan(y);
      mine.lost_nan += bad;
    } else if (fabs(r) > of.largest || isnan(y) || isinf(y)) {
      bad = !at_the_edge(of, y, r) && !(of.nan_for_infinite && isinf(r) && isnan(y));
      mine.new_nonfinite += bad;
    } else {
      bad = !measure(mine, of, choices, i, y, r, pair.distance);
      mine.beyond += bad;
    }
    if (bad && i < mine.first_bad) mine.first_bad = i;
  }
  __shared__ judge::Partial all[128];
  all[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = 64; half > 0; half >>= 1) {
    if (threadIdx.x < half) merge(all[threadIdx.x], all[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) ((judge::Partial*)of.partial)[blockIdx.x] = all[0];
}
