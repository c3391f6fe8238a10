#include "atunner/rewrites/source/catalogue.h"

#include <algorithm>
#include <array>

#include "atunner/rewrites/source/accumulate_in_register.h"
#include "atunner/rewrites/source/aggregate_atomics.h"
#include "atunner/rewrites/source/block_product.h"
#include "atunner/rewrites/source/coarsen_threads.h"
#include "atunner/rewrites/source/float_literals.h"
#include "atunner/rewrites/source/interchange_threads.h"
#include "atunner/rewrites/source/pad_shared.h"
#include "atunner/rewrites/source/private_bins.h"
#include "atunner/rewrites/source/restrict_pointers.h"
#include "atunner/rewrites/source/row_in_registers.h"
#include "atunner/rewrites/source/share_loop_in_block.h"
#include "atunner/rewrites/source/share_loop_in_warp.h"
#include "atunner/rewrites/source/shuffle_tree.h"
#include "atunner/rewrites/source/stage_transpose.h"
#include "atunner/rewrites/source/unroll_loops.h"

namespace atunner::rewrites {
namespace {

using enum evidence::Bottleneck;

constexpr std::array kProduct = {kRereads, kUncoalesced};
constexpr std::array kWarp = {kUncoalesced, kSmallGrid, kLatency};
constexpr std::array kBlock = {kSmallGrid, kLatency};
constexpr std::array kThreads = {kUncoalesced};
constexpr std::array kTree = {kBankConflicts, kDivergence, kBarriers};
constexpr std::array kPadding = {kBankConflicts};
constexpr std::array kFloats = {kFloat64};
constexpr std::array kAtomicCauses = {kAtomics};
constexpr std::array kRows = {kUncoalesced, kRereads, kMemory, kCompute, kLatency};
constexpr std::array kSums = {kLatency, kRereads, kMemory, kCompute};
constexpr std::array kAliases = {kLatency, kCompute, kMemory};
constexpr std::array kResults = {kRereads, kCompute, kMemory, kLatency};
constexpr std::array kUnrolled = {kLatency, kCompute};

constexpr std::array kAll = {
    Rewrite{"block-product",
            "operands in shared memory and 4 x 4 results in registers are loaded once, not for "
            "each product",
            kProduct, BlockProduct},
    Rewrite{"share-loop-in-warp",
            "the lanes of a warp take neighbouring iterations, so that their loads are neighbours "
            "and 32 times as many threads are at work",
            kWarp, ShareLoopInWarp},
    Rewrite{"share-loop-in-block",
            "the warps of a block take turns in a loop, so that several times as many threads are "
            "at work",
            kBlock, ShareLoopInBlock},
    Rewrite{"stage-transpose",
            "a tile in shared memory turns the order, so that loads and stores are neighbours",
            kThreads, StageTranspose},
    Rewrite{"interchange-threads",
            "neighbouring threads take the axis whose elements are neighbours in memory", kThreads,
            InterchangeThreads},
    Rewrite{"shuffle-tree",
            "shuffles need neither shared memory nor a barrier per step, and keep warps full",
            kTree, ShuffleTree},
    Rewrite{"pad-shared", "padded rows put a column's elements into different banks", kPadding,
            PadShared},
    Rewrite{"float-literals", "a literal of type double makes the arithmetic around it float64",
            kFloats, FloatLiterals},
    Rewrite{"aggregate-atomics", "one thread of a warp updates memory for all of them",
            kAtomicCauses, AggregateAtomics},
    Rewrite{"private-bins",
            "a block counts in shared memory and adds each of its counters to memory once",
            kAtomicCauses, PrivateBins},
    Rewrite{"row-in-registers",
            "a thread's neighbouring elements are moved by accesses of 16 bytes, once", kRows,
            RowInRegisters},
    Rewrite{"coarsen-threads",
            "a thread computes several results, and loads and computes what they share once",
            kResults, CoarsenThreads},
    Rewrite{"accumulate-in-register",
            "the sum stays in a register, where memory was read and written in each iteration",
            kSums, AccumulateInRegister},
    Rewrite{"restrict-pointers",
            "the compiler may move loads across stores, and use the read-only path", kAliases,
            RestrictPointers},
    Rewrite{"unroll-loops", "loads of several iterations are under way at once", kUnrolled,
            UnrollLoops},
};

}  // namespace

std::span<const Rewrite> Catalogue() { return kAll; }

const Rewrite* FindRewrite(std::string_view name) {
  const auto found = std::ranges::find(kAll, name, &Rewrite::name);
  return found == kAll.end() ? nullptr : &*found;
}

}  // namespace atunner::rewrites
