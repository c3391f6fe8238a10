// VEC neighbouring elements, moved by as few instructions as there are 16 bytes. The raw words keep
// the compiler from splitting the access.
template <int BYTES>
struct Words {
  typedef uint4 type;
  static constexpr int COUNT = BYTES / 16;
};
template <>
struct Words<1> {
  typedef unsigned char type;
  static constexpr int COUNT = 1;
};
template <>
struct Words<2> {
  typedef unsigned short type;
  static constexpr int COUNT = 1;
};
template <>
struct Words<4> {
  typedef unsigned int type;
  static constexpr int COUNT = 1;
};
template <>
struct Words<8> {
  typedef uint2 type;
  static constexpr int COUNT = 1;
};

template <class T>
union Vector;
template <class To, class T>
DEVICE To get(const Vector<T>& v, int lane);

template <class T>
union Vector {
  typedef Words<VEC * sizeof(T)> Raw;
  typedef typename Words<(VEC * sizeof(T) < 4 ? VEC * sizeof(T) : 4)>::type Word;
  typename Raw::type raw[Raw::COUNT];
  Word word[VEC * sizeof(T) / sizeof(Word)];
  T element[VEC];
  DEVICE Vector() {}
  DEVICE Vector(const Vector& other) { *this = other; }
  DEVICE Vector& operator=(const Vector& other) {
#pragma unroll
    for (int i = 0; i < Raw::COUNT; ++i) raw[i] = other.raw[i];
    return *this;
  }
  DEVICE float operator[](int lane) const { return get<float>(*this, lane); }
};

/// An element converted to the type of the arithmetic.
template <class To, class T>
DEVICE To get(const Vector<T>& v, int lane) {
  return load<To>(v.element[lane]);
}
#ifdef __CUDA_BF16_TYPES_EXIST__
/// A bfloat16 is the upper half of a float: one instruction, where the compiler would extract the
/// half first.
template <>
DEVICE float get<float, __nv_bfloat16>(const Vector<__nv_bfloat16>& v, int lane) {
  if (VEC == 1) return load<float>(v.element[lane]);
  return __uint_as_float(lane % 2 == 0 ? (unsigned)v.word[lane / 2] << 16
                                       : (unsigned)v.word[lane / 2] & 0xffff0000u);
}
#endif

template <class T>
DEVICE void read(Vector<T>& to, const T* from) {
  const auto* words = (const typename Vector<T>::Raw::type*)from;
#pragma unroll
  for (int i = 0; i < Vector<T>::Raw::COUNT; ++i) to.raw[i] = words[i];
}
template <class T>
DEVICE void write(T* to, const Vector<T>& from) {
  auto* words = (typename Vector<T>::Raw::type*)to;
#pragma unroll
  for (int i = 0; i < Vector<T>::Raw::COUNT; ++i) words[i] = from.raw[i];
}
template <class T>
DEVICE void clear(Vector<T>& to) {
#pragma unroll
  for (int i = 0; i < Vector<T>::Raw::COUNT; ++i) to.raw[i] = typename Vector<T>::Raw::type{};
}

/// A value as words of 32 bits.
template <class T>
union InWords {
  static constexpr int COUNT = (sizeof(T) + 3) / 4;
  T value;
  unsigned word[COUNT];
};

/// Copies a vector from global to shared memory asynchronously, if it consists of whole words.
template <class T>
DEVICE void copy_async(Vector<T>* to, const T* from) {
  typedef typename Vector<T>::Raw Raw;
  constexpr int BYTES = sizeof(typename Raw::type);
#pragma unroll
  for (int i = 0; i < Raw::COUNT && BYTES >= 4; ++i)
    copy_async<BYTES>(shared_address(&to->raw[i]), (const typename Raw::type*)from + i);
}
