// Operations that combine two values.
struct Sum {
  template <class T>
  static DEVICE T of(T a, T b) {
    return a + b;
  }
};
struct Prod {
  template <class T>
  static DEVICE T of(T a, T b) {
    return a * b;
  }
};
struct Max {
  template <class T>
  static DEVICE T of(T a, T b) {
    return maximum(a, b);
  }
};
struct Min {
  template <class T>
  static DEVICE T of(T a, T b) {
    return minimum(a, b);
  }
};
struct Any {
  template <class T>
  static DEVICE T of(T a, T b) {
    return a | b;
  }
};
struct All {
  template <class T>
  static DEVICE T of(T a, T b) {
    return a & b;
  }
};

/// Combines N values, a power of two, in a tree: among many small terms and a large one, a chain
/// would round in the same direction every time, and a loop over an array would lie in local memory
/// from 16 on.
template <class Op, int N, class T>
DEVICE T tree(const T* leaves) {
  if constexpr (N == 1)
    return leaves[0];
  else
    return Op::of(tree<Op, N / 2>(leaves), tree<Op, N / 2>(leaves + N / 2));
}
