// Kernels as people write them, with the operator that each is, and kernels that nearly are one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/intake/bare/bare_source.h"
#include "atunner/intake/user_kernel.h"
#include "atunner/recognition/recognise.h"
#include "atunner/verify/virtual_gpu_test.h"

namespace atunner::recognition {
namespace {

class RecogniseTest : public VirtualGpuTest {
 protected:
  /// The form of what is recognised; "" for nothing, and the message of an error.
  std::string FormOf(const std::string& text) {
    auto kernel = ParseBareSource(text, "kernel.cu", {});
    if (!kernel) return kernel.error().ToString();
    const auto schedule = MakeUserTemplate(*kernel);
    if (!schedule) return schedule.error().ToString();
    const RenderedKernel rendered = (*schedule)->Render((*schedule)->Default()).value();
    const auto found = Recognise(rendered, (*schedule)->spec(),
                                 (*schedule)->CheckDims((*schedule)->Default()), gpu_, *compiler_);
    if (!found) return found.error().ToString();
    return *found ? (*found)->form : "";
  }

  std::string FormOfFile(const std::string& name) {
    return FormOf(ReadFile(Path(ATUNNER_SOURCE_DIR) / "bench" / name, 1 << 20).value());
  }

  /// The same with `from` replaced in the file, where it stands.
  std::string FormWith(const std::string& name, const std::string& from, const std::string& to) {
    std::string text = ReadFile(Path(ATUNNER_SOURCE_DIR) / "bench" / name, 1 << 20).value();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return FormOf(text.replace(at, from.size(), to));
  }
};

TEST_F(RecogniseTest, Products) {
  EXPECT_EQ(FormOfFile("naive/gemm.cu"), "a[mk] · b[kn]");
  EXPECT_EQ(FormOfFile("naive/gemm_half.cu"), "a[mk] · b[kn]");
  EXPECT_EQ(FormOfFile("naive_more/gemm_nt.cu"), "A[mk] · B[nk] times 1.5 added to old times 0.5");
  EXPECT_EQ(FormOfFile("naive_public/linear_relu.cu"), "x[mk] · W[nk] plus bias, at least 0");
  EXPECT_EQ(FormWith("naive_public/linear_relu.cu", "acc > 0 ? acc : 0", "acc < 0 ? 0 : acc"),
            "x[mk] · W[nk] plus bias, at least 0 or NaN");
  EXPECT_EQ(FormOfFile("naive_public/gemm_tn.cu"), "B[mk] · A[nk] times 2.0");
  EXPECT_EQ(FormOfFile("naive_public/mat_vec_columns.cu"), "A[km] · x[k]");
  EXPECT_EQ(FormOfFile("naive/dot.cu"), "a · b added");
  // A sample of the blocks runs, since the source fixes the size.
  EXPECT_EQ(FormWith("naive_more/batched_gemm.cu", "batches = 64", "batches = 16"),
            "a[pmk] · b[pkn], batches: of n squared");
  EXPECT_EQ(FormOfFile("naive_more/matvec.cu"), "A[mk] · x[k]");
  EXPECT_EQ(FormWith("naive_suites/syrk.cu", "N 1024\n#define M 512", "N 64\n#define M 32"),
            "a: mk,nk->mn times 1.1 added to old times 0.9");
  EXPECT_EQ(FormWith("naive_suites/covariance.cu", "M 512\n#define N 512", "M 256\n#define N 64"),
            "data: km,kn->mn");
}

TEST_F(RecogniseTest, Rows) {
  EXPECT_EQ(FormOfFile("naive/row_sum.cu"), "sum of rows of in");
  EXPECT_EQ(FormOfFile("naive/column_sum.cu"), "sum of columns of in");
  EXPECT_EQ(FormOfFile("naive_more/column_mean.cu"), "mean of columns of data");
  EXPECT_EQ(FormOfFile("naive_suites/channel_sum.cu"),
            "sum of channels of dy, pixels elements each");
  EXPECT_EQ(FormOfFile("naive/softmax.cu"), "softmax of in by cols");
  EXPECT_EQ(FormOfFile("naive/argmax.cu"), "argmax of in");
  EXPECT_EQ(FormOfFile("naive/scan.cu"), "inclusive running sum of in by cols");
  EXPECT_EQ(FormOfFile("naive/layernorm.cu"),
            "layer normalisation of in by cols with 1e-05, weight gamma, bias beta");
  EXPECT_EQ(FormOfFile("naive_more/layernorm_row.cu"),
            "layer normalisation of inp by C with 1e-05, weight weight, bias bias");
}

TEST_F(RecogniseTest, Attention) {
  EXPECT_EQ(FormOfFile("naive/attention.cu"),
            "attention of q to k, one head, size 64, scale the root of the head size");
  EXPECT_EQ(FormOfFile("naive_public/attention_row.cu"),
            "attention of Q to K with V, one head, size d, scale the root of the head size");
}

TEST_F(RecogniseTest, LayoutsAndConvolutions) {
  EXPECT_EQ(FormOfFile("naive/transpose.cu"), "transposition of in by rows");
  EXPECT_EQ(FormOfFile("naive_public/transpose_tile.cu"), "transposition of idata by height");
  EXPECT_EQ(FormOfFile("naive_public/conv2d_padded.cu"),
            "convolution of input and kernel, inC by height by width, filters: outC, stride 1, "
            "padding 1");
  EXPECT_EQ(FormOfFile("naive_public/average_pool.cu"),
            "mean of windows of x, C by H, extent 2, stride 2");
}

TEST_F(RecogniseTest, NearMissesAreNothing) {
  EXPECT_EQ(FormWith("naive/gemm.cu", "i < k", "i < k - 1"), "");
  EXPECT_EQ(
      FormWith("naive/gemm.cu", "c[row * n + col] = sum", "c[row * n + col] = row < col ? 0 : sum"),
      "");
  EXPECT_EQ(FormWith("naive/gemm.cu", "float sum = 0.0f", "float sum = 0.01f"), "");
  EXPECT_EQ(FormWith("naive/row_sum.cu", "int j = 0", "int j = 1"), "");
  EXPECT_EQ(FormWith("naive/layernorm.cu", "variance / cols", "variance / (cols - 1)"), "");
  EXPECT_EQ(FormWith("naive/layernorm.cu", "1e-5f", "2e-5f"), "");
  EXPECT_EQ(FormWith("naive/softmax.cu", "sum = 0.0f", "sum = 1.0f"), "");
  EXPECT_EQ(FormWith("naive/transpose.cu", "y < rows", "y < rows - 1"), "");
  EXPECT_EQ(FormWith("naive_public/conv2d_padded.cu", "pad = ksize / 2", "pad = 0"), "");
}

TEST_F(RecogniseTest, OtherKernelsAreNothing) {
  EXPECT_EQ(FormOfFile("naive/black_scholes.cu"), "");
  EXPECT_EQ(FormOfFile("naive/stencil2d.cu"), "");
  EXPECT_EQ(FormOfFile("naive/histogram.cu"), "");
}

}  // namespace
}  // namespace atunner::recognition
