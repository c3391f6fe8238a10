// How two values become one.
struct Sum { template <class T> static DEVICE T of(T a, T b) { return a + b; } };
struct Prod { template <class T> static DEVICE T of(T a, T b) { return a * b; } };
struct Max { template <class T> static DEVICE T of(T a, T b) { return maximum(a, b); } };
struct Min { template <class T> static DEVICE T of(T a, T b) { return minimum(a, b); } };
struct Any { template <class T> static DEVICE T of(T a, T b) { return a | b; } };
struct All { template <class T> static DEVICE T of(T a, T b) { return a & b; } };
