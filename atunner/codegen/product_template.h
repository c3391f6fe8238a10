// Schedules for c[m, n] = a[m, k] · b[k, n]: tiles of the result, an order of blocks, and a split over the depth k. A
// matrix product is one; a convolution is one whose left operand is gathered.
#pragma once

#include <span>

#include "atunner/codegen/bound_template.h"

namespace atunner {

class ProductTemplate : public BoundTemplate {
 public:
  Configuration Default() const override;

 protected:
  struct Extents {
    int64_t m = 1, n = 1, k = 1;
    int64_t batch = 1;   ///< products side by side
    double reached = 1;  ///< of the depth, by the mean tile
  };
  ProductTemplate(const KernelSpec& spec, const DeviceProfile& profile, Extents extents)
      : BoundTemplate(spec, profile), extents_(extents), operands_(spec.compute_dtype) {}

  /// Resources of one block.
  virtual int64_t Threads(const Configuration& configuration) const = 0;
  virtual int64_t SharedBytes(const Configuration& configuration) const = 0;
  /// Schedules worth starting from: values of the parameters before group_m. Default is the cheapest of them.
  virtual std::vector<std::vector<int64_t>> Starts() const = 0;

  /// group_m and split_k, and what rules splits out.
  void AddOrderAndSplit();
  int64_t Integer(const Configuration& configuration, const char* name) const {
    return GetInt(space_, configuration, name);
  }
  /// A split whose blocks add up among themselves.
  bool InCluster(const Configuration& configuration) const {
    return space_.Find("in_cluster") >= 0 && Integer(configuration, "in_cluster") != 0;
  }
  /// A split whose shares a second step adds up.
  bool Split(const Configuration& configuration) const {
    return Integer(configuration, "split_k") > 1 && !InCluster(configuration);
  }
  /// The product's step without its arguments. `m` and `n` are expressions over the task's dims.
  LaunchStep ProductStep(const Configuration& configuration, const char* entry, const std::string& m,
                         const std::string& n, const std::string& batch = "1") const;
  /// The argument that receives the product: `output`, or the workspace of shares when k is split.
  ArgBinding Destination(const Configuration& configuration, const std::string& output) const;
  /// With a split: the workspace of shares, and the step that adds them up into `output`.
  void FinishSplit(const Configuration& configuration, LaunchPlan& plan, const std::string& output,
                   const std::string& m, const std::string& n) const;
  /// Further arguments of the kernel that stores the result.
  virtual Arguments FinishArguments() const { return {}; }
  /// What one multiprocessor does with `resident` blocks.
  struct Pace {
    int64_t resident = 1;
    double flops = 0;       ///< per second
    double copied = 120;    ///< bytes per ns into shared memory, at most
    double turn_ns = 1700;  ///< from one block's end to its successor's first product
  };
  /// ns: the busiest SM's products, or its copies, L2's or DRAM's traffic where one of them takes longer; turns from
  /// block to block, and the costs of starting and of adding up a split.
  double Time(const Configuration& configuration, const Pace& pace) const;
  int64_t Tiles(const Configuration& configuration) const;
  /// Blocks of the busiest SM when clusters find their places.
  int64_t BlocksPerSm(const Configuration& configuration) const;
  /// Bytes of b that come from DRAM once more, where it does not fit into L2: for every further group of rows of tiles,
  /// or for every further device full of blocks.
  double ReadAgain(const Configuration& configuration, const Pace& pace) const;
  /// Rows of a's tile that are copied: where there are fewer than a tile has, whole groups of eight.
  int64_t RowsFetched(const Configuration& configuration) const;
  /// Do the operands leave what is in L2 where it is?
  virtual bool Streams(const Configuration&) const { return false; }

  Extents extents_;
  DType operands_;  ///< that are multiplied
};

}  // namespace atunner
