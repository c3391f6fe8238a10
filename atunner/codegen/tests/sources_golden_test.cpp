// One source of every family as testdata/NAME.golden has it, with what comes from kernels/ named
// instead of quoted, and its launches. ATUNNER_WRITE_GOLDEN=1 writes the files anew: whoever
// changes what is written reads the difference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "atunner/base/files.h"
#include "atunner/codegen/tests/family_tasks_test.h"

namespace atunner {
namespace {

struct Sample {
  const char* name;
  FamilyTask task;
  DType dtype = DType::kBFloat16;
  std::vector<std::pair<const char*, int64_t>> changed = {};  ///< of the default configuration
};

void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.name; }

/// The files of kernels/ that become part of sources, long ones first.
std::vector<std::pair<std::string, std::string>> KernelTexts() {
  std::vector<std::pair<std::string, std::string>> texts;
  const Path root = ATUNNER_SOURCE_DIR;
  for (const char* folder : {"kernels/families", "kernels/graph"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file())
        texts.emplace_back(entry.path().lexically_relative(root).string(),
                           ReadFile(entry.path()).value());
  }
  std::ranges::sort(texts, std::greater(), [](const auto& each) { return each.second.size(); });
  return texts;
}

std::string Abridged(std::string source) {
  for (const auto& [name, text] : KernelTexts()) {
    for (size_t at = source.find(text); at != source.npos; at = source.find(text))
      source.replace(at, text.size(), "// … " + name + "\n");
  }
  return source;
}

std::string Launches(const LaunchPlan& plan) {
  std::string text;
  for (const auto& [name, bytes] : plan.workspaces)
    text += fmt::format("// workspace {}: {}\n", name, bytes.text());
  for (const LaunchStep& step : plan.steps) {
    text += fmt::format("// {}{}: grid {}, {}, {}; block {}; cluster {}, {}; shared {};",
                        step.entry, step.cooperative ? " (cooperative)" : "", step.grid[0].text(),
                        step.grid[1].text(), step.grid[2].text(), step.block[0].text(),
                        step.cluster[0].text(), step.cluster[1].text(), step.shared_bytes.text());
    for (const ArgBinding& arg : step.args)
      text += arg.kind == ArgBinding::Kind::kScalar ? fmt::format(" {}", arg.value.text())
              : InWorkspace(arg.kind)               ? " @" + arg.name
                                                    : " " + arg.name;
    text += "\n";
  }
  return text;
}

class SourcesOfFamilies : public testing::TestWithParam<Sample> {};

TEST_P(SourcesOfFamilies, AreAsTheyWere) {
  const Sample& sample = GetParam();
  const KernelSpec spec = SpecOf(sample.task, sample.dtype);
  const auto schedule = MakeTemplate(spec, FindProfile("H200").value()).value();
  const RenderedKernel kernel = schedule->Render(WithValues(*schedule, sample.changed)).value();
  // Any constraint that is lost or gained shows in their number.
  const auto valid = SpaceIndex::Build(schedule->space(), spec.dims);
  const std::string text = Abridged(kernel.source.text) + "\n" + Launches(kernel.plan) +
                           fmt::format("// {} configurations are valid\n", valid->size());
  const Path file = Path(ATUNNER_SOURCE_DIR) / "atunner/codegen/testdata" /
                    fmt::format("{}.golden", sample.name);
  if (std::getenv("ATUNNER_WRITE_GOLDEN") != nullptr) ASSERT_TRUE(WriteFileAtomic(file, text));
  EXPECT_EQ(text, ReadFile(file).value_or("no such file"));
}

INSTANTIATE_TEST_SUITE_P(
    All, SourcesOfFamilies,
    testing::Values(
        Sample{"rows", {"layernorm_backward", {{1024, 16384}}, {}}},
        Sample{"rows_of_float32", {"softmax", {{8192, 1000}}, {}}, DType::kFloat32},
        Sample{"gemm", {"matmul", {{64, 4096, 4096}}, {}}, DType::kFloat16},
        Sample{"attention", {"flash_attention", {{2, 8, 1024, 128}}, {}}},
        Sample{"pooling_with_weights",
               {"conv",
                {{8, 64, 56, 56}, {64, 1, 7, 7}},
                {{"padding", int64_t{3}}, {"groups", int64_t{64}}}}},
        Sample{"topk_whole", {"sort", {{64, 4096}}, {}}, DType::kFloat32},
        Sample{"elements", {"gelu", {{4096, 4096}}, {}}},
        Sample{"tensors", {"clip_grad_norm", {{768, 768}, {768}, {3072, 768}}, {}}},
        Sample{"elements_broken",
               {"add", {{4096, 4095}, {4095}}, {}},
               DType::kFloat32,
               {{"vector", 4}}},
        Sample{"reduction", {"rms_norm", {{8192, 4096}}, {}}},
        Sample{"reduction_uneven", {"log_softmax", {{4096, 50257}}, {}}},
        Sample{"columns", {"sum", {{8192, 4096}}, {{"axis", int64_t{0}}}}},
        Sample{"columns_ring", {"batch_norm", {{64, 64, 112, 112}}, {}}},
        Sample{"scan", {"cumsum", {{4096, 4096}}, {}}},
        Sample{"scan_across", {"cumsum", {{4096, 4096}}, {{"axis", int64_t{0}}}}},
        Sample{"transpose", {"transpose", {{4096, 4096}}, {}}},
        Sample{"pooling", {"max_pool", {{16, 32, 64, 64}}, {}}},
        Sample{"scatter", {"embedding_backward", {{64, 512}, {8}}, {}}},
        Sample{"scatter_strips", {"gather_backward", {{64, 512}, {64, 9}}, {}}},
        Sample{"topk", {"topk", {{64, 4096}}, {{"k", int64_t{8}}}}},
        Sample{"topk_tiles", {"sort", {{64, 65536}}, {}}},
        Sample{"product", {"linear", {{1024, 1024}, {1024, 1024}}, {}}},
        Sample{"planes", {"matmul", {{2048, 2048, 2048}}, {}}, DType::kFloat32},
        Sample{"weights", {"int4_linear", {{8, 4096}, {4096, 4096}}, {}}},
        Sample{"weights_of_groups", {"int4_linear", {{64, 4096}, {4096, 4096}}, {}}},
        Sample{"attention_paged",
               {"attention_paged", {{8, 32, 128}, {1024, 16, 8, 128}, {8, 64}}, {}}},
        Sample{"attention_backward",
               {"attention_gqa_backward", {{1, 8, 1024, 64}, {1, 8, 1024, 64}}, {}}},
        Sample{"convolution",
               {"conv", {{8, 64, 56, 56}, {64, 64, 3, 3}}, {{"padding", int64_t{1}}}}},
        Sample{"convolution_of_rows",
               {"conv", {{8, 256, 33, 33}, {256, 256, 3, 3}}, {{"padding", int64_t{1}}}}},
        Sample{"filter_gradient",
               {"conv_backward",
                {{8, 64, 56, 56}, {64, 64, 3, 3}},
                {{"padding", int64_t{1}}, {"wrt", std::string("w")}}}},
        Sample{"depthwise_filters",
               {"conv_backward",
                {{8, 64, 56, 56}, {64, 1, 3, 3}},
                {{"padding", int64_t{1}}, {"groups", int64_t{64}}, {"wrt", std::string("w")}}}},
        Sample{"stages", {"cross_entropy", {{8192, 512}}, {}}}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace atunner
