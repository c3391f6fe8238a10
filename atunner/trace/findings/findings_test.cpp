// Each rule with a trace that shows it and one that must not.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "atunner/trace/findings/finding.h"
#include "atunner/trace/timeline_builder_test.h"

namespace atunner::trace {
namespace {

using Build = std::function<void(TimelineBuilder&)>;

struct Case {
  Build shows;
  Build must_not;
};

/// A loop of `count` steps of 1000 us that is busy except for what `step` leaves out.
Build Loop(int count, std::function<void(TimelineBuilder&, int64_t)> step) {
  return [count, step](TimelineBuilder& t) {
    for (int i = 0; i < count; ++i) {
      t.Step(i, 1000 * i, 1000);
      step(t, 1000 * i);
    }
  };
}

/// A step with a kernel of 900 us and an idle rest during which `host` is on the main thread.
Build IdleDuring(EventKind kind, const char* host, int64_t length) {
  return Loop(4, [=](TimelineBuilder& t, int64_t at) {
    t.Host(kind, host, at, length);
    t.Kernel("tensorop_gemm", at + length, at + length + 1, 990 - length);
  });
}

/// Kernels of one name for `share` per mille of each step, beside a kernel of a library.
Build ShareOf(const char* name, int64_t share, KernelDetail detail = {}) {
  return Loop(4, [=](TimelineBuilder& t, int64_t at) {
    t.Run("cublas_tensorop_gemm", at + 2, 990 - share, {500, 256});
    if (share > 0) t.Kernel(name, at + 10, at + 992 - share, share, detail);
  });
}

Build Steady() { return ShareOf("", 0); }

/// Work on the GPU of one step whose call is made inside an operator.
Build InOperator(const char* name, int calls, int64_t each) {
  return Loop(3, [=](TimelineBuilder& t, int64_t at) {
    t.Run("cublas_tensorop_gemm", at + 1, 300);
    for (int i = 0; i < calls; ++i) {
      t.Operator(name, at + 310 + 4 * i, 3);
      t.Kernel("k", at + 311 + 4 * i, at + 320 + (each + 1) * i, each);
    }
  });
}

Build Copies(CopyDetail detail, int count, int64_t each, const char* call = "cudaMemcpyAsync",
             const char* name = "Memcpy") {
  return Loop(3, [=](TimelineBuilder& t, int64_t at) {
    t.Run("cublas_tensorop_gemm", at + 1, 500);
    for (int i = 0; i < count; ++i) t.Copy(detail, at + 510 + (each + 2) * i, each, call, name);
  });
}

/// Collectives of `length` beside kernels that hide `hidden` of it.
Build Collectives(int count, int64_t length, int64_t hidden) {
  return Loop(3, [=](TimelineBuilder& t, int64_t at) {
    t.Run("cublas_tensorop_gemm", at + 1, 499);
    for (int i = 0; i < count; ++i)
      t.Kernel("ncclAllReduce", at + 400, at + 500 - hidden + length * i, length, {}, 20);
  });
}

Build Memory(int64_t allocated, int64_t reserved) {
  return [=](TimelineBuilder& t) {
    Steady()(t);
    t.Memory(allocated, reserved);
  };
}

Build With(Build base, std::function<void(TimelineBuilder&)> more) {
  return [=](TimelineBuilder& t) {
    base(t);
    more(t);
  };
}

const std::map<std::string, Case>& Cases() {
  constexpr int64_t kMiB = 1 << 20, kGB = 1'000'000'000;
  const CopyDetail pageable{8 * kMiB, MemorySpace::kPageable, MemorySpace::kDevice, false};
  const CopyDetail pinned{8 * kMiB, MemorySpace::kPinned, MemorySpace::kDevice, false};
  const CopyDetail tiny{64, MemorySpace::kPinned, MemorySpace::kDevice, false};
  const CopyDetail within{8 * kMiB, MemorySpace::kDevice, MemorySpace::kDevice, false};
  const CopyDetail peer{8 * kMiB, MemorySpace::kDevice, MemorySpace::kDevice, true};
  const CopyDetail managed{8 * kMiB, MemorySpace::kManaged, MemorySpace::kDevice, false};
  static const std::map<std::string, Case> kCases = {
      {"data_loading",
       {IdleDuring(EventKind::kOperator, "enumerate(DataLoader)#next", 200),
        IdleDuring(EventKind::kOperator, "enumerate(DataLoader)#next", 20)}},
      {"low_utilization", {IdleDuring(EventKind::kOperator, "aten::mm", 700), Steady()}},
      {"synchronization",
       {Loop(4,
             [](TimelineBuilder& t, int64_t at) {
               t.Run("tensorop_gemm", at + 1, 700);
               t.Call("cudaStreamSynchronize", at + 10, 691);
               t.Operator("aten::mm", at + 705, 250);
             }),
        IdleDuring(EventKind::kOperator, "aten::mm", 250)}},
      {"launch_bound",
       {Loop(4,
             [](TimelineBuilder& t, int64_t at) {
               for (int i = 0; i < 50; ++i) t.Kernel("k", at + 20 * i, at + 20 * i + 10, 10);
             }),
        Steady()}},
      {"host_late",
       {IdleDuring(EventKind::kPython, "train.py(12): forward", 300),
        IdleDuring(EventKind::kOperator, "enumerate(DataLoader)#next", 300)}},
      {"allocation_in_loop",
       {IdleDuring(EventKind::kCall, "cudaMalloc", 100),
        IdleDuring(EventKind::kCall, "cudaMallocAsync", 100)}},
      {"module_loading", {IdleDuring(EventKind::kCall, "cuModuleLoadData", 100), Steady()}},
      {"host_communication",
       {IdleDuring(EventKind::kOperator, "gloo:all_reduce", 100),
        IdleDuring(EventKind::kOperator, "gloo:all_reduce", 10)}},
      {"long_gap",
       {[](TimelineBuilder& t) { t.Run("a", 1, 5).Run("b", 600'000, 5); },
        [](TimelineBuilder& t) { t.Run("a", 1, 5).Run("b", 400'000, 5); }}},
      {"dependencies",
       {Loop(4,
             [](TimelineBuilder& t, int64_t at) {
               t.Kernel("a", at, at + 2, 500).Kernel("b", at + 5, at + 800, 190);
             }),
        Steady()}},
      {"hot_kernel", {ShareOf("my_kernel", 400), ShareOf("cublas_tensorop_gemm_2", 400)}},
      {"no_tensor_cores", {ShareOf("ampere_sgemm_128x64_nn", 300), ShareOf("tensorop_gemm", 300)}},
      {"double_precision", {ShareOf("ampere_dgemm_64x64", 200), ShareOf("tensorop_gemm", 200)}},
      {"unfused_elementwise",
       {Loop(4,
             [](TimelineBuilder& t, int64_t at) {
               for (int i = 0; i < 20; ++i)
                 t.Run("vectorized_elementwise_kernel", at + 20 * i + 2, 18);
             }),
        ShareOf("vectorized_elementwise_kernel", 100)}},
      {"format_conversion", {ShareOf("nchwToNhwcKernel", 100), ShareOf("transpose_kernel", 100)}},
      {"layout_changes", {ShareOf("transpose_kernel", 100), ShareOf("nchwToNhwcKernel", 100)}},
      {"unfused_attention",
       {ShareOf("softmax_warp_forward", 200),
        With(ShareOf("softmax_warp_forward", 200),
             [](TimelineBuilder& t) { t.Kernel("flash_fwd_kernel", 3, 4, 5); })}},
      {"normalization",
       {ShareOf("vectorized_layer_norm_kernel", 300), ShareOf("vectorized_layer_norm_kernel", 50)}},
      {"small_grid", {ShareOf("my_kernel", 300, {16, 256}), ShareOf("my_kernel", 300, {400, 256})}},
      {"low_occupancy",
       {ShareOf("my_kernel", 300, {400, 256, 255, 0, 0.06f}),
        ShareOf("my_kernel", 300, {400, 256, 64, 0, 0.6f})}},
      {"scalar_reads",
       {Loop(3,
             [](TimelineBuilder& t, int64_t at) {
               t.Run("tensorop_gemm", at + 1, 900);
               for (int i = 0; i < 5; ++i)
                 t.Operator("aten::_local_scalar_dense", at + 100 * i, 50);
             }),
        Loop(3,
             [](TimelineBuilder& t, int64_t at) {
               t.Run("tensorop_gemm", at + 1, 900);
               t.Operator("aten::_local_scalar_dense", at + 100, 50);
             })}},
      {"type_conversions", {InOperator("aten::_to_copy", 5, 40), InOperator("aten::mm", 5, 40)}},
      {"optimizer_loop",
       {Loop(2,
             [](TimelineBuilder& t, int64_t at) {
               t.Operator("Optimizer.step#AdamW.step", at, 900);
               for (int i = 0; i < 80; ++i) t.Run("adam", at + 2 + 10 * i, 5);
             }),
        Loop(2,
             [](TimelineBuilder& t, int64_t at) {
               t.Operator("Optimizer.step#AdamW.step", at, 900);
               for (int i = 0; i < 4; ++i) t.Run("multi_tensor_apply", at + 2 + 10 * i, 5);
             })}},
      {"contiguous_copies",
       {InOperator("aten::contiguous", 5, 40), InOperator("aten::contiguous", 1, 10)}},
      {"zero_fills", {InOperator("aten::zero_", 20, 5), InOperator("aten::zero_", 4, 5)}},
      {"pageable_copies", {Copies(pageable, 2, 50), Copies(pinned, 2, 50)}},
      {"blocking_copies",
       {Loop(3,
             [=](TimelineBuilder& t, int64_t at) {
               t.Run("tensorop_gemm", at + 1, 500);
               t.Copy(pinned, at + 530, 20);
               t.Call("cudaMemcpy", at + 505, 50);
             }),
        Copies(pinned, 2, 50)}},
      {"blocking_sets",
       {Copies({}, 2, 5, "cudaMemset", "Memset"), Copies({}, 2, 5, "cudaMemsetAsync", "Memset")}},
      {"small_copies", {Copies(tiny, 40, 2), Copies(tiny, 4, 2)}},
      {"device_copies", {Copies(within, 4, 50), Copies(pinned, 4, 50)}},
      {"managed_memory", {Copies(managed, 4, 50), Copies(pinned, 4, 50)}},
      {"exposed_communication", {Collectives(1, 300, 0), Collectives(1, 300, 250)}},
      {"no_overlap", {Collectives(1, 300, 0), Collectives(1, 300, 250)}},
      {"small_collectives", {Collectives(40, 10, 0), Collectives(1, 400, 0)}},
      {"gloo_on_gpu",
       {With(Steady(), [](TimelineBuilder& t) { t.raw().backend = "gloo"; }),
        With(Steady(), [](TimelineBuilder& t) { t.raw().backend = "nccl"; })}},
      {"data_parallel",
       {InOperator("DataParallel.forward", 2, 40),
        InOperator("DistributedDataParallel.forward", 2, 40)}},
      {"peer_copies", {Copies(peer, 4, 50), Copies(within, 4, 50)}},
      {"uneven_steps",
       {With(Loop(5, [](TimelineBuilder& t, int64_t at) { t.Run("tensorop_gemm", at + 1, 900); }),
             [](TimelineBuilder& t) { t.Step(5, 5000, 3000); }),
        Steady()}},
      {"memory_nearly_full", {Memory(95 * kGB, 96 * kGB), Memory(50 * kGB, 60 * kGB)}},
      {"fragmentation", {Memory(20 * kGB, 40 * kGB), Memory(35 * kGB, 40 * kGB)}},
      {"profiler_overhead",
       {With(Steady(), [](TimelineBuilder& t) { t.Host(EventKind::kOverhead, "Flush", 100, 900); }),
        With(Steady(), [](TimelineBuilder& t) { t.Host(EventKind::kOverhead, "Flush", 100, 9); })}},
      {"incomplete_trace",
       {[](TimelineBuilder& t) { t.Unlinked("a", 0, 10).Run("b", 20, 10); }, Steady()}},
      {"small_graphs",
       {[](TimelineBuilder& t) {
          for (int i = 0; i < 10; ++i) t.Graph(2, 20 * i + 1);
        },
        [](TimelineBuilder& t) {
          for (int i = 0; i < 10; ++i) t.Graph(10, 20 * i + 1);
        }}},
      {"only_host", {[](TimelineBuilder& t) { t.Operator("aten::mm", 0, 10); }, Steady()}},
  };
  return kCases;
}

std::optional<Finding> Find(const Build& build, const std::string& rule) {
  TimelineBuilder builder;
  build(builder);
  const Timeline timeline = builder.Build();
  const Analysis analysis = Analyze(timeline);
  for (const Finding& finding : FindAll({analysis, nullptr}))
    if (finding.rule == rule) return finding;
  return std::nullopt;
}

class Findings : public testing::TestWithParam<std::string> {};

TEST_P(Findings, ShowsWhereItIsAndOnlyThere) {
  const Case& test = Cases().at(GetParam());
  const auto finding = Find(test.shows, GetParam());
  ASSERT_TRUE(finding);
  EXPECT_FALSE(finding->title.empty());
  EXPECT_FALSE(finding->evidence.empty());
  EXPECT_FALSE(finding->action.empty());
  EXPECT_GE(finding->gain, 0);
  EXPECT_LE(finding->gain, 1);
  const auto wrong = Find(test.must_not, GetParam());
  EXPECT_FALSE(wrong) << wrong->evidence;
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, test] : Cases()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Rules, Findings, testing::ValuesIn(Names()),
                         [](const auto& tested) { return tested.param; });

TEST(FindingRules, EachHasACase) {
  std::set<std::string> names;
  for (const Rule& rule : AllRules()) {
    EXPECT_TRUE(names.insert(std::string(rule.name)).second);
    if (rule.name == "straggler" || rule.name == "imbalance") continue;  // below
    EXPECT_TRUE(Cases().contains(std::string(rule.name))) << rule.name;
  }
  EXPECT_EQ(names.size(), Cases().size() + 2);
}

TEST(FindingRules, RanksAreCompared) {
  TimelineBuilder builder;
  Steady()(builder);
  const Timeline timeline = builder.Build();
  const Analysis analysis = Analyze(timeline);
  RankComparison ranks;
  ranks.ranks = {{.rank = 0, .window = 1'000'000, .compute = 500'000},
                 {.rank = 1,
                  .window = 1'000'000,
                  .compute = 900'000,
                  .last_arrivals = 9,
                  .caused_wait = 400'000}};
  ranks.collectives = 10;
  const auto has = [&](std::string_view rule) {
    for (const Finding& finding : FindAll({analysis, &ranks}))
      if (finding.rule == rule) return true;
    return false;
  };
  EXPECT_FALSE(has("straggler"));
  EXPECT_TRUE(has("imbalance"));
  ranks.straggler = 1;
  ranks.ranks[1].compute = 510'000;
  EXPECT_TRUE(has("straggler"));
  EXPECT_FALSE(has("imbalance"));
}

}  // namespace
}  // namespace atunner::trace
