// Graphs that take several kernels of several families, on the virtual GPU.
#include "atunner/codegen/tests/graph_kernels_test.h"
#include "atunner/cuda_text/baseline_kernels.h"
#include "atunner/graph/text.h"

namespace atunner {
namespace {

class Stages : public GraphKernels {
 protected:
  Stages() : GraphKernels("H200") {}
  void CheckText(const std::string& text, size_t drawn = 1, const char* family = "stages") {
    const auto graph = graph::Parse(text, "test.atg");
    ASSERT_TRUE(graph.has_value()) << graph.error().ToString();
    Check(SpecOfGraph(*graph, {}).value(), family, drawn);
  }
};

TEST_F(Stages, ProductsBehindProducts) {
  CheckText(R"(
graph mlp
input x: bfloat16[64, 96]
input up: bfloat16[192, 96]
input down: bfloat16[80, 192]
h = contract(x, up, equation="mk,nk->mn", as=float32)
active = cast(h * sigmoid(h), bfloat16)
wide = contract(active, down, equation="mk,nk->mn", as=float32)
y = cast(wide, bfloat16)
output y
)");
}

// Two products of one operand that an expression takes are one kernel's, whose tiles hold columns
// of both.
TEST_F(Stages, PairsOfProductsAreMultipliedTogether) {
  for (const char* b : {"nk", "kn"}) {
    const std::string type = std::string("bfloat16") + (b[0] == 'n' ? "[80, 96]" : "[96, 80]");
    const std::string equation = std::string(", equation=\"mk,") + b + "->mn\", as=float32)\n";
    const std::string text =
        "graph pair\ninput x: bfloat16[72, 96]\ninput bias: bfloat16[80]\ninput up: " + type +
        "\ninput gate: " + type + "\nh = contract(x, up" + equation + "g = contract(x, gate" +
        equation + "y = cast((h + cast(bias, float32)) * (g * sigmoid(g)), bfloat16)\noutput y\n";
    CheckText(text, 3, "product");
  }
}

// What is finished with elements of its own, that lie as the result does or otherwise, wide or
// narrow.
TEST_F(Stages, ProductsWithElementsOfTheResult) {
  for (const char* type : {"bfloat16", "float32"}) {
    const std::string text =
        std::string("graph residual\ninput a: bfloat16[72, 96]\ninput w: bfloat16[80, 96]\n") +
        "input x: " + type +
        "[72, 80]\ninput scale: float32[72, 1]\ninput turned: bfloat16[80, 72]\n" +
        "out = contract(a, w, equation=\"mk,nk->mn\", as=float32)\n";
    const std::string sum = "cast(out * scale + cast(x, float32)";
    CheckText(text + "y = " + sum + ", bfloat16)\noutput y\n", 3, "product");
    CheckText(text + "t = transpose(turned, order=[1, 0])\ny = " + sum +
                  " * cast(t, float32), bfloat16)\noutput y\n",
              2, "product");
  }
}

TEST_F(Stages, ANormBeforeAProductWithAResidualBehindIt) {
  CheckText(R"(
graph block
input x: float16[48, 128]
input weight: float16[128]
input w: float16[128, 128]
wide = cast(x, float32)
square = wide * wide
mean = reduce_mean(square, axes=[-1], keep=true)
normed = cast(wide * rsqrt(mean + 1e-5) * cast(weight, float32), float16)
y = contract(normed, w, equation="mk,nk->mn", as=float32)
z = cast(wide + y, float16)
output z
)");
}

// Parts whose sizes are open leave them open: the whole is right at every size that is right for
// all of them.
TEST_F(Stages, SizesStayOpen) {
  const std::string text = R"(
graph block
dim n = 1..4096
input x: bfloat16[n, 128]
input weight: bfloat16[128]
input up: bfloat16[192, 128]
input down: bfloat16[128, 192]
wide = cast(x, float32)
square = wide * wide
mean = reduce_mean(square, axes=[-1], keep=true)
normed = cast(wide * rsqrt(mean + 1e-5) * cast(weight, float32), bfloat16)
h = contract(normed, up, equation="mk,nk->mn", as=float32)
active = cast(h * sigmoid(h), bfloat16)
out = contract(active, down, equation="mk,nk->mn", as=float32)
y = cast(wide + out, bfloat16)
output y
)";
  const KernelSpec spec = SpecOfText(text, {{"n", 300}});
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  const Configuration first = schedule->Default();
  EXPECT_EQ(schedule->CheckDims(first).size(), 2u);
  EXPECT_TRUE(Serves(schedule->FreeSizes(first), spec.dims, {{"n", 4096}}, {}).has_value());
  Check(spec, "stages", 1);
  EXPECT_GE(verified_, 6u);
  // A parameter of a plain kernel's own hid the size of that name.
  const std::string plain = graph::BaselineKernels(GraphOf(spec).value(),
                                                   graph::BaselineForm::kReference)
                                .value()
                                .source.text;
  EXPECT_EQ(plain.find("long long n, float sum"), std::string::npos);
}

TEST_F(Stages, ScansTransposesAndSumsOneAfterTheOther) {
  CheckText(R"(
graph walk
input x: float32[7, 33, 17]
grown = exp(minimum(x, 1))
up = scan_sum(grown, axis=1)
turned = transpose(up, order=[0, 2, 1])
top = reduce_max(turned, axes=[0, 2], keep=true)
share = turned / top
y = reduce_mean(share, axes=[2])
output y
output top
)");
}

// Attention's scale is a number that is not whole.
TEST_F(Stages, AttentionWithAProductBehindIt) {
  CheckText(R"(
graph attention
input q: bfloat16[1, 2, 32, 32]
input k: bfloat16[1, 2, 48, 32]
input v: bfloat16[1, 2, 48, 32]
input w: bfloat16[32, 64]
scores = contract(q, k, equation="bhsd,bhtd->bhst", as=float32, sparse=true)
scaled = scores * 0.17677669529663687
top = reduce_max(scaled, axes=[3], keep=true)
grown = select(scaled == (-inf), 0, exp(scaled - detach(top)))
share = cast(grown, bfloat16)
weighted = contract(share, v, equation="bhst,bhtd->bhsd", as=float32, sparse=true)
total = reduce_sum(grown, axes=[3], keep=true)
heads = cast(weighted / total, bfloat16)
turned = transpose(heads, order=[0, 2, 1, 3])
rows = reshape(turned, shape=[64, 32])
out = contract(rows, w, equation="mk,kn->mn", as=float32)
y = cast(out, bfloat16)
output y
)",
            0);
}

// However it is written, it is the attention family's, between products of other parts.
// Weights that the graph itself says: few are written out, more of them lie in memory for a
// product.
TEST_F(Stages, ContractionsWithConstants) {
  CheckText(
      "graph few\ninput x: float32[6, 7, 3]\n"
      "f: float32[3, 3] = constant(0.3, 0.6, 0.1, -0.2, -0.3, 0.5, 0.5, -0.4, -0.1)\n"
      "y = contract(x, f, equation=\"hwc,oc->hwo\")\noutput y\n");
  std::string table;
  for (int i = 0; i < 256; ++i) table += (i == 0 ? "" : ", ") + std::to_string(i % 7 - 3);
  CheckText("graph more\ninput x: bfloat16[40, 16]\nf: bfloat16[16, 16] = constant(" + table +
            ")\ns = contract(x, f, equation=\"mk,nk->mn\", as=float32)\ny = cast(s, "
            "bfloat16)\noutput y\n");
}

// Attention is a task of its own, whose batch is the graph's.
TEST_F(Stages, AttentionOfAnyBatch) {
  const KernelSpec spec = SpecOfText(R"(
graph attended
dim n = 1..64
input q: bfloat16[n, 2, 72, 64]
input k: bfloat16[n, 2, 72, 64]
input v: bfloat16[n, 2, 72, 64]
input w: bfloat16[64, 64]
scores = contract(q, k, equation="bhsd,bhtd->bhst", as=float32)
scaled = scores * 0.125
top = reduce_max(scaled, axes=[-1], keep=true)
grown = exp(scaled - top)
total = reduce_sum(grown, axes=[-1], keep=true)
share = cast(grown / total, bfloat16)
mixed_sum = contract(share, v, equation="bhst,bhtd->bhsd", as=float32)
mixed = cast(mixed_sum, bfloat16)
y_sum = contract(mixed, w, equation="bhsk,nk->bhsn", as=float32)
y = cast(y_sum, bfloat16)
output y
)",
                                     {{"n", 3}});
  const auto schedule = MakeTemplate(spec, gpu_.profile()).value();
  EXPECT_EQ(schedule->FreeSizes(schedule->Default()).dims, std::vector<std::string>{"n"});
  EXPECT_FALSE(schedule->CheckDims(schedule->Default()).empty());
  Check(spec, "stages", 1);
}

TEST_F(Stages, AttentionOfAnotherSpelling) {
  std::string text = "graph heads\ninput given: bfloat16[64, 64]\ninput weight: bfloat16[64]\n";
  for (const char* name : {"q", "k", "v"})
    text += std::string("input w") + name + ": bfloat16[64, 64]\n";
  // Scores of large inputs are beyond what exponents of a rounded product stand.
  text += "x = cast(cast(given, float32) * cast(weight, float32) * 4, bfloat16)\n";
  for (const std::string name : {"q", "k", "v"}) {
    text += name + "_sum = contract(x, w" + name + ", equation=\"mk,nk->mn\", as=float32)\n" +
            name + "_flat = cast(" + name + "_sum, bfloat16)\n" + name + "_rows = reshape(" + name +
            "_flat, shape=[1, 64, 2, 32])\n" + name + " = transpose(" + name +
            "_rows, order=[0, 2, 1, 3])\n";
  }
  text += R"(scores = contract(q, k, equation="bhsd,bhtd->bhst", as=float32)
masked = select(index(-1) <= index(-2), scores * 0.17677669529663687, -inf)
top = reduce_max(masked, axes=[-1], keep=true)
grown = exp(masked - top)
total = reduce_sum(grown, axes=[-1], keep=true)
share = cast(grown / total, bfloat16)
mixed = contract(share, v, equation="bhst,bhtd->bhsd", as=float32, sparse=true)
y = cast(mixed, bfloat16)
output y
)";
  CheckText(text, 0);
  const auto spec = SpecOfGraph(graph::Parse(text, "test.atg").value(), {}).value();
  const auto schedule = MakeTemplate(spec, FindProfile("H200").value()).value();
  EXPECT_THAT(schedule->Render(schedule->Default())->source.text,
              testing::HasSubstr("// attention_gqa"));
}

// Whatever the letters: axes that lie otherwise are transposed first.
TEST_F(Stages, ContractionsOfAnyAxes) {
  const std::string types = "input a: bfloat16[24, 5, 40]\ninput b: bfloat16[5, 24, 56]\n";
  for (const char* equation : {"kbm,bkn->bmn", "kbm,bkn->mnb"})
    CheckText("graph g\n" + types + "y = contract(a, b, equation=\"" + equation +
                  "\", as=float32)\noutput y\n",
              0);
  CheckText(
      "graph g\ninput a: float32[33, 40]\ninput b: float32[33, 17]\ny = contract(a, b, "
      "equation=\"km,kn->mn\")\noutput y\n");
}

// A size that is open runs at the task's own.
TEST_F(Stages, OpenSizesAreTheTasksOwn) {
  CheckText(R"(
graph totals
dim B = 1..24
input x: float32[B, 300]
rows = reduce_max(x, axes=[1], keep=true)
shifted = exp(x - rows)
y = reduce_sum(shifted, axes=[0, 1])
output y
)");
}

}  // namespace
}  // namespace atunner
