// What is known of a value in host code: a number as an expression of named sizes, a buffer, the
// extents of a dim3, a list, or the names that the user must state.
//
// Example: after `int n = 1 << 20; float* x; cudaMalloc(&x, n * sizeof(float));` the variable n is
// the number "n" (a leaf with the value 1048576) and x is a buffer of "n * 4" bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/model/value/value.h"

namespace atunner {

/// A name with a literal value, which expressions keep as a name: a problem size or a tunable.
struct Leaf {
  std::string name;
  int64_t value = 0;
  bool of_file = false;  ///< a macro or constant of the file, which device code may use too
};
using Leaves = std::map<std::string, Leaf, std::less<>>;

/// Why a value is unknown.
struct Missing {
  std::set<std::string> names;  ///< variables whose values would make it known
  /// It also depends on something without a name, such as a file or the library's answer
  bool nameless = false;

  void Add(const Missing& other);
};

struct HostBuffer;
struct HostVariable;

struct HostValue {
  enum class Kind : uint8_t { kUnknown, kNumber, kBuffer, kAddress, kExtents, kList, kLambda };

  Kind kind = Kind::kUnknown;
  std::string text;   ///< kNumber: an expression in the language of model/expr
  bool real = false;  ///< kNumber: floating point, so that a division has a fraction
  bool plain = true;  ///< kNumber: needs no brackets when it replaces a name
  std::string type;   ///< kNumber: its declared type; may be empty
  Missing missing;    ///< kUnknown
  std::shared_ptr<HostBuffer> buffer;
  std::shared_ptr<HostVariable> target;  ///< kAddress
  std::vector<HostValue> items;          ///< kExtents: three; kList: its elements
  TokenRange parameters, body;           ///< kLambda

  bool Is(Kind wanted) const { return kind == wanted; }
  static HostValue Number(std::string text, bool real = false, bool plain = true);
  static HostValue Unknown(std::string name = "");
  /// The extents x, y and z; those that are missing are 1.
  static HostValue Extents(std::vector<HostValue> given);
  static HostValue Of(std::shared_ptr<HostBuffer> buffer);
};

/// Memory that the host allocates.
struct HostBuffer {
  HostValue bytes;     ///< a number, or unknown
  HostValue elements;  ///< of a container; unknown for plain memory
  std::string type;    ///< declared element type; may be empty
  bool zeroed = false;
};

/// A variable, a member of one (`grid.x`) or an element of one (`d[2]`).
struct HostVariable {
  std::string name;
  std::string type;      ///< element type of a pointer, array or container
  bool pointer = false;  ///< a pointer, array or container
  bool array = false;    ///< declared with extents: sizeof gives the bytes of all elements
  HostValue value;
};
using HostCell = std::shared_ptr<HostVariable>;

/// The variables of a call of a host function.
struct HostFrame {
  size_t function = SIZE_MAX;  ///< index in CudaSyntax::functions
  std::map<std::string, HostCell, std::less<>> variables;
  /// Template type parameters and local aliases
  std::map<std::string, std::string, std::less<>> types;
  std::optional<HostValue> result;
};

/// The number now, by the leaves' values; nullopt if the value is no number.
std::optional<Value> NumberNow(const HostValue& value, const Leaves& leaves);
/// The truth of a condition: of a number, or of a pointer, which is not null if it has a buffer.
std::optional<bool> TruthNow(const HostValue& value, const Leaves& leaves);

}  // namespace atunner
