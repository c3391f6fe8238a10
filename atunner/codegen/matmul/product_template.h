// Schedules for c[m, n] = a[m, k] · b[k, n]: tiles of the result, an order of blocks, and split-K,
// with any MainLoop (main_loop.h). A matrix product is one; a convolution is one whose operands are
// gathered.
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/matmul/main_loop.h"

namespace atunner {

class ProductTemplate : public BoundTemplate {
 public:
  std::optional<double> Cost(const Configuration& configuration,
                             const DeviceProfile& profile) const override;

 protected:
  struct Extents {
    int64_t m = 1, n = 1, k = 1;
    int64_t batch = 1;   ///< products side by side
    double reached = 1;  ///< share of the depth that the mean tile multiplies (triangles)
  };
  /// Products of `operands` with results of type `result`.
  ProductTemplate(const KernelSpec& spec, const DeviceProfile& profile, const MainLoop& loop,
                  Extents extents, DType operands, DType result,
                  const std::string& more_shared = "0");

  bool Persistent(const Chosen& at) const { return IsSet(at, "persistent"); }
  /// True for split-K inside a cluster, whose blocks add up in shared memory.
  bool InCluster(const Chosen& at) const { return IsSet(at, "in_cluster"); }
  /// True for split-K whose partial sums a second step adds up.
  bool Split(const Chosen& at) const { return at["split_k"] > 1 && !InCluster(at); }

  /// The product's step without its arguments: a block per tile, or as many blocks as the device
  /// holds. `m`, `n` and `batch` are expressions over the task's dims.
  LaunchStep TileStep(const Chosen& at, const char* entry, const std::string& m,
                      const std::string& n, const std::string& batch = "1") const;
  /// The argument that receives the product: `output`, or the workspace of partial sums.
  ArgBinding Destination(const Chosen& at, const std::string& output) const;
  /// With split-K: the workspace of partial sums, and the step that adds them up into `output`.
  void FinishSplit(const Chosen& at, LaunchPlan& plan, const std::string& output,
                   const std::string& m, const std::string& n) const;
  /// The text of the epilogue (kernels/families/matmul/plain_epilogue.cuh), and further arguments
  /// of the kernel that stores the result.
  virtual std::string Epilogue() const = 0;
  virtual Arguments EpilogueArguments() const = 0;

  /// The constants that the tile's sources expect.
  ConstantBlock TileConstants(const Chosen& at, bool b_transposed) const;
  /// The whole source: main loop, tiles, `kernel`, and the texts for widened operands (`widened`)
  /// and split-K. `places`: the index of results, if they are not row-major.
  SourceUnit EmitProduct(const Chosen& at, const ConstantBlock& constants, std::string_view kernel,
                         bool widened, std::string_view places = {}) const;
  /// The loop's starts, one order of blocks, and all values of the parameters behind.
  std::vector<Choices> Ways() const override;
  /// Rows of a's tile that are copied: if there are fewer rows than a tile has, whole groups of
  /// eight.
  int64_t RowsFetched(const Chosen& at) const;
  /// True if operands are read with a policy that evicts them from L2 first.
  virtual bool Streams(const Chosen&) const { return false; }

  const MainLoop& loop_;
  Extents extents_;
  DType operands_;  ///< type of the operands

 private:
  bool IsSet(const Chosen& at, const char* name) const {
    return space_.Find(name) >= 0 && at[name] != 0;
  }
  /// Adds group_m and split_k with their constraints; where the loop allows it `persistent`, and
  /// `in_cluster`.
  void AddOrders();
  void AddPersistent();
  void AddClusterSplit();
  int64_t Threads(const Chosen& at) const { return Evaluate(threads_, at); }
  /// Blocks that an SM holds at once.
  int64_t Resident(const Chosen& at) const;
  /// Blocks of the busiest SM, with the SMs that clusters can use.
  int64_t BlocksPerSm(const Chosen& at) const;

  /// The rates of one SM with `resident` blocks.
  struct Pace {
    int64_t resident = 1;
    double flops = 0;    ///< per second
    double copied = 0;   ///< bytes per ns into shared memory, at most
    double turn_ns = 0;  ///< from one block's end to its successor's first product
  };
  /// ns: the busiest SM's products, or its copies, L2's or DRAM's traffic where one of them takes
  /// longer; turns from block to block, and the costs of a launch and of split-K.
  double Time(const Chosen& at, const Pace& pace) const;
  /// ns of adding up the partial sums of split-K.
  double AddingUpNs(const Chosen& at, const CostConstants& costs) const;
  /// Bytes of b that are read from DRAM again, if b does not fit into L2: for every further group
  /// of rows of tiles, or for every further device full of blocks.
  double RereadBytes(const Chosen& at, const Pace& pace) const;

  Expr threads_;
  Expr registers_;  ///< of a thread
  Expr shared_;     ///< bytes
};

}  // namespace atunner
