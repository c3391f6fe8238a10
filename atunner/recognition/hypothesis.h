// A guess of which operator a kernel computes, and on which of its buffers.
//
// Guesses are made of what is known without reading the source: the numbers of elements of the
// buffers, and the scalars of the launch. Example: buffers of 96 * 224, 224 * 160 and 96 * 160
// elements can be a product of matrices, in eight ways of being transposed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/model/value/dtype.h"

namespace atunner::recognition {

struct BufferFact {
  std::string name;  ///< of the task's argument
  DType dtype = DType::kFloat32;
  int64_t elements = 0;
  bool has_input = false;  ///< defined before the launch
  bool written = false;
};

/// An integer scalar of the launch, or a size of the task.
struct SizeFact {
  std::string name;
  int64_t value = 0;
};

/// A floating-point scalar of the launch.
struct FactorFact {
  std::string name;
  double value = 0;
};

/// What is known of a kernel at one problem size. Names and order do not depend on the size.
struct Facts {
  std::vector<BufferFact> buffers;
  std::vector<SizeFact> sizes;
  std::vector<FactorFact> factors;

  /// The only buffer that the kernel writes; nullptr if there are several.
  const BufferFact* Output() const;
  /// The buffers, but for the output, with inputs of its type. A kernel that works in place has
  /// none.
  std::vector<const BufferFact*> Inputs() const;
};

struct Hypothesis {
  std::string name;   ///< "product of matrices"
  std::string form;   ///< the same at all sizes: "matmul a=A[k,m] b=B[n,k] times alpha"
  std::string graph;  ///< in text form, without symbols
  std::map<std::string, std::string> names;  ///< the task's arguments by the graph's tensors
};

/// Writes the graph of a hypothesis, line by line.
class HypothesisWriter {
 public:
  /// `name` for people, `form` as in Hypothesis.
  HypothesisWriter(std::string name, std::string form);
  /// Declares an input, and gives its name in the graph.
  std::string Input(const BufferFact& buffer, const std::vector<int64_t>& shape);
  /// The same value in float32 where it is narrower.
  std::string Wide(const std::string& value, const BufferFact& buffer);
  /// Adds "v3 = VALUE", and gives "v3".
  std::string Line(const std::string& value);
  /// The last line: the output's contents, converted to its type.
  Hypothesis Output(const BufferFact& buffer, const std::string& value) &&;

 private:
  Hypothesis made_;
  int lines_ = 0;
};

/// "float32[96, 224]".
std::string TypeText(DType dtype, const std::vector<int64_t>& shape);
/// A number as expressions have it, so that it is read back exactly.
std::string NumberText(double value);

/// Scale and addition of old contents: alpha * value + beta * old. `text` has "{v}" for the value
/// and "{c}" for the old contents of the output.
struct Epilogue {
  std::string text;
  std::string form;  ///< "" for the value alone
  bool reads_output = false;
};
/// All that factors of the launch and 1 allow; the value alone comes first.
std::vector<Epilogue> EpiloguesOf(const Facts& facts);
/// The end of a hypothesis: the value after the epilogue is the output of this shape.
Hypothesis Finish(HypothesisWriter writer, const Facts& facts, const std::string& value,
                  const Epilogue& epilogue, const std::vector<int64_t>& shape);

/// The hypotheses of all kinds. Empty for a kernel that writes several buffers.
std::vector<Hypothesis> AllHypotheses(const Facts& facts);

}  // namespace atunner::recognition
