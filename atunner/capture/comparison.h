// Compares the results of a tuned kernel with those of the original.
//
// Results are equal bits, or floating-point numbers that differ by less than a tolerance times the
// largest number that the original wrote. The types come from the kernel's signature: in
// scale(float*, int const*, Pair*) the first buffer has floats, the second has integers, which must
// be equal, and the type of the third is unknown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atunner::capture {

/// Type of the numbers in a buffer.
enum class Element { kUnknown, kExact, kHalf, kBFloat16, kFloat, kDouble };

/// Types that the parameters of a kernel point to, by its demangled name. kUnknown for parameters
/// that are no pointers to numbers. Empty for a C name.
std::vector<Element> PointedTypes(std::string_view readable);

/// Contents of one buffer.
struct Contents {
  std::string_view before;    ///< the launch
  std::string_view original;  ///< after the program's kernel
  std::string_view tuned;     ///< after the tuned kernel
};

struct Comparison {
  bool equal = true;     ///< all bits
  bool accepted = true;  ///< equal, or within the tolerance
  double error = 0;      ///< largest difference, relative to the largest number
  uint64_t at = 0;       ///< first byte that differs
};

/// A 16-bit type has a tolerance of two units of its roundoff at least. Numbers of unknown type are
/// taken for floats or doubles if nearly all of those that were written have a magnitude between
/// 1e-18 and 1e18 or are zero; otherwise they must be equal. (Small integers are subnormal
/// numbers as floats, and random bits have any magnitude.)
Comparison Compare(const Contents& contents, Element element, double tolerance);

}  // namespace atunner::capture
