// The suites of planted bugs and of correct programs, compiled from CUDA C++: every bug is found at
// its line, and no correct program is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <utility>

#include "atunner/base/files.h"
#include "atunner/base/random.h"
#include "atunner/compile/nvrtc_compiler.h"
#include "atunner/vgpu/engine.h"

namespace atunner::vgpu {
namespace {

constexpr size_t kFloats = 64;

/// One kernel of a suite's file.
struct Suspect {
  std::string name;
  std::string kind;             ///< of the hazard that its comment names
  std::vector<uint32_t> lines;  ///< marked BUG
};

std::string NameAfter(const std::string& line) {
  const size_t end = line.find('(');
  const size_t open = line.starts_with("KERNEL __cluster_dims__") ? line.find('(', line.find(')'))
                                                                  : end;
  const size_t start = line.rfind(' ', open) + 1;
  return line.substr(start, open - start);
}

/// Kernels in the order of the file. A comment on a line of its own that names a hazard opens a
/// planted bug. "// BUG" marks its line, or the next one if it has a line of its own.
std::vector<Suspect> ReadSuite(const std::string& text) {
  std::vector<Suspect> suite;
  std::string kind;
  std::vector<uint32_t> before;  // marked lines of helpers in front of the kernel
  std::istringstream in(text);
  uint32_t number = 0;
  bool marked = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with("// BUG") && line.find_first_not_of(' ') == line.size() - 6) {
      marked = true;
      continue;
    }
    if (line.starts_with("// ") && !line.starts_with("// --")) {
      kind = line.substr(3);
      before.clear();
    }
    if (line.starts_with("KERNEL ") && !line.ends_with(");")) {
      suite.push_back({NameAfter(line), kind, before});
      before.clear();
    }
    if (!std::exchange(marked, false) && line.find("// BUG") == std::string::npos) continue;
    if (!suite.empty() && suite.back().kind == kind && before.empty() &&
        line.find("__device__") == std::string::npos)
      suite.back().lines.push_back(number);
    else
      before.push_back(number);
  }
  return suite;
}

/// A suite's file compiled and loaded once for all its tests.
class Suite {
 public:
  explicit Suite(const std::string& file) {
    memory.Track();
    auto compiler = MakeNvrtcCompiler();
    if (!compiler) {
      missing = compiler.error().ToString();
      return;
    }
    const Path path = Path(ATUNNER_SOURCE_DIR) / "atunner" / "vgpu" / "sanitizer" / file;
    CompileRequest request;
    request.source.name = file;
    request.source.text = ReadFile(path).value();
    request.arch = "sm_90";
    // Cooperative groups need the CUDA C++ core libraries; without the toolkit's headers the suites
    // cannot compile.
    const Path toolkit = "/usr/local/cuda/include";
    request.source.include_folders = {toolkit.string(), (toolkit / "cccl").string()};
    if (!std::filesystem::exists(toolkit / "cooperative_groups.h")) {
      missing = "the CUDA toolkit's headers are missing";
      return;
    }
    suspects = ReadSuite(request.source.text);
    for (const Suspect& suspect : suspects) request.entries.push_back(suspect.name);
    const CompileOutcome outcome = (*compiler)->Compile(request).value();
    if (!outcome.ok()) {
      error = outcome.error;
      return;
    }
    auto module = ptx::Parse(outcome.module->ptx);
    if (!module) {
      error = module.error().ToString();
      return;
    }
    auto loaded = LoadProgram(*std::move(module), memory);
    if (loaded)
      program = *std::move(loaded);
    else
      error = loaded.error().ToString();
  }

  LaunchOutcome Run(const std::string& kernel, const std::vector<float>& x,
                    std::vector<float>* y = nullptr, bool check = true) {
    const uint64_t from = memory.Allocate(kFloats * 4).value();
    const uint64_t to = memory.Allocate(kFloats * 4).value();
    std::memcpy(reinterpret_cast<void*>(from), x.data(), kFloats * 4);
    memory.MarkDefined(from, kFloats * 4);
    std::vector<std::byte> params(16);
    std::memcpy(params.data(), &from, 8);
    std::memcpy(params.data() + 8, &to, 8);
    ExecOptions options;
    options.check_hazards = options.check_global = check;
    options.deadline_seconds = 20;
    options.max_warp_instructions_per_block = 50'000'000;
    const LaunchOutcome outcome =
        program->Run(kernel, {{2, 1, 1}, {64, 1, 1}, {}, 1024}, params, options).outcome;
    if (y != nullptr) {
      y->resize(kFloats);
      std::memcpy(y->data(), reinterpret_cast<const void*>(to), kFloats * 4);
    }
    memory.Free(from);
    memory.Free(to);
    return outcome;
  }

  Memory memory{uint64_t{1} << 32};
  std::vector<Suspect> suspects;
  std::unique_ptr<Program> program;
  std::string missing;  ///< why there is no compiler
  std::string error;
};

/// "" when the outcome is what a planted bug asks for.
std::string Judge(const Suspect& bug, const LaunchOutcome& outcome) {
  if (outcome.hazards.empty()) return bug.name + ": nothing found; " + outcome.message;
  const Hazard& hazard = outcome.hazards[0];
  const std::string found = bug.name + ": " + std::string(Name(hazard.kind)) + " at " +
                            hazard.where + ": " + hazard.detail;
  if (Name(hazard.kind) != bug.kind) return found + "; expected " + bug.kind;
  // A race is reported at the later access; the text names the earlier one.
  const bool named = std::ranges::any_of(bug.lines, [&](uint32_t line) {
    return hazard.where == "bugs.cu:" + std::to_string(line) ||
           hazard.detail.find("at line " + std::to_string(line)) != std::string::npos;
  });
  return named ? ""
               : found + "; expected line " + std::to_string(bug.lines.empty() ? 0 : bug.lines[0]);
}

int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

float SwitchValue(int i) {
  const float cases[] = {2, 3, -6, 2, -1, 2, 1.0f / 3, 9};
  return cases[i % 8];
}

/// The results of correct.cu's kernels in y[i] for x of ones, where that does not depend on which
/// block is last.
const std::map<std::string, float (*)(int)> kValues = {
    {"barrier_between", [](int) { return 1.0f; }},
    {"remote_stores", [](int i) { return 70.0f + static_cast<float>(i); }},
    {"vector_reductions", [](int i) { return i % 4 == 0   ? 3.5f
                                             : i % 4 == 1 ? 4.25f
                                                          : 5.0f; }},
    {"warp_tree", [](int) { return 32.0f; }},
    {"block_tree", [](int) { return 64.0f; }},
    {"block_tree_then_warp", [](int) { return 64.0f; }},
    {"atomics_only", [](int) { return 64.0f; }},
    {"histogram", [](int) { return 4.0f; }},
    {"early_exit", [](int i) { return i > 40 ? 0.0f : 1.0f; }},
    {"producer_consumer_barriers", [](int i) { return i < 32 ? 0.0f : 4.0f; }},
    {"barrier_reductions", [](int) { return 12.0f; }},
    {"uneven_loops", [](int i) { return static_cast<float>(i); }},
    {"bytes_of_one_word", [](int i) { return static_cast<float>(64 - i); }},
    {"halves_of_one_word", [](int) { return 2.0f; }},
    {"ballot_and_match", [](int) { return 25.0f; }},
    {"match_all", [](int) { return 34.0f; }},
    {"warp_reduce_instructions", [](int i) { return i < 32 ? 498.0f : 1522.0f; }},
    {"half_warp_shuffle", [](int i) { return i % 32 < 16 ? 2.0f : 1.0f; }},
    {"tiles", [](int) { return 72.0f; }},
    {"spin_lock", [](int) { return 65.0f; }},
    {"flag_between_warps", [](int i) { return i < 32 ? 0.0f : 1.0f; }},
    {"last_block_sums", [](int) { return 3.0f; }},
    {"recursion", [](int i) { return static_cast<float>(Fibonacci(i % 9) + 1); }},
    {"virtual_functions",
     [](int i) { return static_cast<float>(i % 2 ? (1 + i) * (1 + i) : 3 * i * i); }},
    {"function_table", [](int i) { return i % 2 ? 3.0f : 2.0f; }},
    {"barrier_in_a_function", [](int) { return 2.0f; }},
    {"big_switch", SwitchValue},
    {"device_malloc", [](int) { return 1.0f; }},
    {"async_pipeline", [](int) { return 4.0f; }},
    {"mbarrier_phases", [](int) { return 7.0f; }},
    {"mbarrier_producer_consumer", [](int i) { return i < 32 ? 0.0f : 36.0f; }},
    {"bulk_copy", [](int) { return 2.0f; }},
    {"async_copy_with_mbarrier", [](int) { return 1.0f; }},
    {"grid_barrier", [](int) { return 3.0f; }},
    {"matrix_load_and_product", [](int) { return 16.0f; }},
    {"fragments_from_shared", [](int) { return 16.0f; }},
    {"matrix_store", [](int i) { return static_cast<float>(i + 1); }},
    {"prefix_scan", [](int i) { return static_cast<float>(i + 1); }},
    {"dynamic_shared_of_two_types", [](int i) { return static_cast<float>((i ^ 7) + 1); }},
    {"generic_pointer", [](int i) { return i % 2 ? 2.0f : 1.0f; }},
    {"multicast_stage_given_back_to_both", [](int i) { return i < 32 ? 0.0f : 8.0f; }},
    {"distributed_shared", [](int) { return 2.0f; }},
    {"distributed_atomics", [](int) { return 128.0f; }},
    {"padding_is_copied", [](int) { return 4.0f; }},
    {"vector_over_the_tail", [](int) { return 3.0f; }},
    {"best_so_far", [](int) { return 15.0f; }},
    {"variable_set_where_needed", [](int i) { return i < 40 ? 4.0f : 1.0f; }},
    {"shuffled_from_some", [](int) { return 1.0f; }},
    {"last_block_reads_plainly", [](int) { return 5.0f; }},
    {"transposed_through_global", [](int i) { return static_cast<float>(1 + i % 8 * 8 + i / 8); }},
    {"halves_by_two_threads", [](int i) { return static_cast<float>(64 - i); }},
    {"half_of_a_pair_undefined", [](int) { return 1.0f; }},
    {"merge_looks_behind_the_end", [](int i) { return static_cast<float>(i + 1); }},
    {"pairs_published_whole", [](int) { return 1.0f; }},
    {"tile_of_two_warps", [](int) { return 104.0f; }},
    {"division_of_128_bits", [](int) { return 1.0f; }},
    {"stack_as_long_as_asked",
     [](int i) {
       return static_cast<float>((i + 99) * (i + 99) + (i + 100) / 2 * ((i + 100) / 2));
     }},
    {"three_of_a_vector", [](int) { return 3.0f; }},
    {"neighbour_counts_before", [](int) { return 3.0f; }},
    {"neighbour_counts_after", [](int) { return 3.0f; }},
    {"sparse_product", [](int i) { return i % 32 / 4 % 2 == 0 ? 52.0f : 68.0f; }},
    {"partial_tile_exchanged", [](int i) { return i >= 24 ? 2.0f : 1.0f; }},
    {"tile_filled_up_later", [](int i) { return i < 24 ? 3.0f : 1.0f; }},
    {"pairs_copied_twice", [](int i) { return 1.0f + static_cast<float>(63 - (i ^ 1)); }},
    {"grid_barrier_by_hand", [](int) { return 5.0f; }},
    {"counter_of_each_round", [](int) { return 384.0f; }},
    {"three_counters_in_turns", [](int) { return 320.0f; }},
    {"bins_of_each_warp", [](int) { return 2.0f; }},
    {"sums_read_by_vectors", [](int) { return 4.0f; }},
    {"copies_then_atomics_behind_a_barrier", [](int) { return 2.0f; }},
    {"places_by_a_counter", [](int) { return 2.0f; }},
    {"maximum_tested_first", [](int) { return 63.0f; }},
    {"sum_of_shared_by_compare_and_swap", [](int) { return 64.0f; }},
    {"counter_of_its_block", [](int) { return 64.0f; }},
    {"cleared_counted_and_read_in_global", [](int) { return 64.0f; }},
    {"flag_of_each_thread", [](int i) { return i < 32 ? 0.0f : 2.0f; }},
    {"counted_writers", [](int i) { return i < 32 ? 0.0f : 3.0f; }},
    {"volatile_with_barriers", [](int) { return 4.0f; }},
    {"volatile_scratch_with_barrier", [](int) { return 2.0f; }},
    {"arrivals_then_barrier", [](int) { return 1.0f; }},
    {"mbarriers_of_one_lane", [](int i) { return i < 32 ? 0.0f : 6.0f; }},
    {"stage_given_back_behind_syncwarp", [](int i) { return i < 32 ? 0.0f : 3.0f; }},
    {"all_fence_and_one_signals", [](int) { return 3.0f; }},
    {"one_fences_behind_the_barrier", [](int) { return 3.0f; }},
    {"value_and_state_in_one_word", [](int i) { return i == 0 ? 10.0f : 0.0f; }},
    {"aggregates_and_prefixes", [](int i) { return i == 0 ? 4.0f : 0.0f; }},
    {"released_by_an_atomic", [](int) { return 8.0f; }},
    {"read_only_input", [](int) { return 3.0f; }},
    {"remote_counter_in_phases", [](int) { return 128.0f; }},
    {"shuffle_in_both_branches",
     [](int i) {
       const int other = (i ^ 16) % 32 + 1;
       return static_cast<float>(i % 32 < 16 ? other + 7 - 1 : 2 * 3 * other);
     }},
    {"shuffle_in_three_places",
     [](int i) {
       const int lane = i % 32;
       const int from = 31 - lane;
       const int times = from < 8 ? 2 : from < 20 ? 3 : 5;
       return static_cast<float>((from + 1) * times + (lane < 8 ? 1 : lane < 20 ? 2 : 3));
     }},
    {"votes_in_both_branches", [](int) { return 11.0f; }},
    {"half_a_warp_summed", [](int i) { return i % 32 == 0 ? 16.0f : 0.0f; }},
    {"twenty_lanes_summed", [](int i) { return i % 32 == 0 ? 20.0f : 0.0f; }},
    {"twenty_lanes_by_selection", [](int i) { return i % 32 == 0 ? 20.0f : 0.0f; }},
    {"rest_of_a_block_summed", [](int i) { return i == 0    ? 32.0f
                                                  : i == 32 ? 8.0f
                                                            : 0.0f; }},
    {"double_halves_summed", [](int i) { return i % 32 == 0 ? 8.0f : 0.0f; }},
    {"elected_leader", [](int i) { return i % 32 == 0 ? 2.0f : 1.0f; }},
};

TEST(Sanitizer, FindsEveryPlantedBugAtItsLine) {
  Suite suite("bugs.cu");
  if (!suite.missing.empty()) GTEST_SKIP() << suite.missing;
  ASSERT_EQ(suite.error, "");
  Random random(9);
  std::vector<float> x(kFloats);
  for (float& v : x) v = static_cast<float>(random.Normal());
  std::vector<std::string> missed;
  for (const Suspect& bug : suite.suspects) {
    const std::string verdict = Judge(bug, suite.Run(bug.name, x));
    if (!verdict.empty()) missed.push_back(verdict);
  }
  EXPECT_THAT(missed, testing::IsEmpty());
  EXPECT_GE(suite.suspects.size(), 140u);
}

TEST(Sanitizer, DoesNotReportCorrectPrograms) {
  Suite suite("correct.cu");
  if (!suite.missing.empty()) GTEST_SKIP() << suite.missing;
  ASSERT_EQ(suite.error, "");
  std::vector<std::string> reported;
  size_t compared = 0;
  for (const Suspect& correct : suite.suspects) {
    std::vector<float> y;
    const LaunchOutcome outcome = suite.Run(correct.name, std::vector<float>(kFloats, 1.0f), &y);
    if (!outcome.completed()) reported.push_back(correct.name + ": " + outcome.message);
    // Memory tracks writes, but no check is enabled.
    if (!suite.Run(correct.name, std::vector<float>(kFloats, 1.0f), nullptr, false).completed())
      reported.push_back(correct.name + " without checks");
    const auto value = kValues.find(correct.name);
    if (!outcome.completed() || value == kValues.end()) continue;
    ++compared;
    for (int i = 0; i < static_cast<int>(kFloats); ++i)
      EXPECT_FLOAT_EQ(y[static_cast<size_t>(i)], value->second(i)) << correct.name << " at " << i;
  }
  EXPECT_THAT(reported, testing::IsEmpty());
  EXPECT_EQ(compared, kValues.size());
  EXPECT_GE(suite.suspects.size(), 140u);
}

}  // namespace
}  // namespace atunner::vgpu
