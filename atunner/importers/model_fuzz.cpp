// Foreign archives and programs: whatever the bytes, a graph or a message.
#include <cstdint>
#include <string_view>

#include "atunner/importers/import_model.h"
#include "atunner/importers/import_onnx.h"
#include "atunner/importers/onnx/onnx_model.h"
#include "atunner/importers/program/program_reader.h"

#ifndef ATUNNER_FUZZER
#include <gtest/gtest.h>

#include <string>

#include "atunner/base/mutation_test.h"
#include "atunner/importers/onnx_support_test.h"
#include "atunner/importers/zip_support_test.h"
#endif

namespace atunner::importers {
namespace {

bool Use(std::string_view bytes) {
  if (LooksLikeOnnx(bytes)) return ImportOnnx(bytes, "fuzz", "/nonexistent").has_value();
  ModelFile file;
  if (auto archive = ReadModelArchive(bytes, "fuzz")) {
    file = *std::move(archive);
  } else if (auto program = ReadProgram(bytes, "fuzz")) {
    file.program = *std::move(program);
  } else {
    return false;
  }
  const auto model = ImportProgram(file, "fuzz");
  if (!model) return false;
  ATUNNER_CHECK(model->inputs.size() == model->graph.inputs().size());
  return true;
}

}  // namespace
}  // namespace atunner::importers

#ifdef ATUNNER_FUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)atunner::importers::Use({reinterpret_cast<const char*>(data), size});
  return 0;
}
#else
namespace atunner::importers {
namespace {

TEST(ModelFuzz, DamagedModelsNeverCrash) {
  Random random(1);
  // A convolution, its shape computed, a pooling and a branch.
  const std::string onnx = OnnxModelOf(
      {{OnnxNodeOf("Conv", {"x", "w"}, {"a"}), OnnxNodeOf("Shape", {"a"}, {"s"}),
        OnnxNodeOf("Slice", {"s", "zero", "one"}, {"front"}),
        OnnxNodeOf("Concat", {"front", "rest"}, {"wanted"}, {WholeAttribute("axis", 0)}),
        OnnxNodeOf("Reshape", {"a", "wanted"}, {"b"}), OnnxNodeOf("Softmax", {"b"}, {"y"})},
       {OnnxRaw<float>("w", {2, 1, 2, 2}, kOnnxFloat, {1, 2, 3, 4, 5, 6, 7, 8}),
        OnnxRaw<int64_t>("zero", {1}, kOnnxInt64, {0}),
        OnnxRaw<int64_t>("one", {1}, kOnnxInt64, {1}),
        OnnxRaw<int64_t>("rest", {1}, kOnnxInt64, {-1})},
       {OnnxInfo("x", {1, 1, 4, 4})},
       {OnnxInfo("y", {1, 18})}});
  for (const std::string& good : {ZipOf(SmallArchive()), SmallProgram(), onnx}) {
    ASSERT_TRUE(Use(good));
    for (int i = 0; i < 3000; ++i) (void)Use(Mutated(good, random));
  }
}

}  // namespace
}  // namespace atunner::importers
#endif
