// The parameters of an attention task that kernels need; the task is flash_attention or one of the
// library's operators.
#pragma once

#include <optional>
#include <string>

#include "atunner/codegen/template/bound_template.h"

namespace atunner {

/// The tile of a block of the forward pass.
struct ForwardTile {
  int64_t queries, keys;
  bool one_per_sm;  ///< persistent blocks, one per SM
};

struct AttentionForm {
  /// At the task's own size; `heads` counts the heads of all sequences
  int64_t heads = 1, queries = 1, keys = 1, dim = 1;
  int64_t members = 1;  ///< query heads of a sequence
  int64_t sharing = 1;  ///< query heads that share a key head
  bool causal = false;
  int64_t window = 0;  ///< number of latest keys that a query sees; 0 = all
  double scale = 1;    ///< factor of scores
  /// Scores may be so large that they are rounded when scaled, before they are subtracted
  bool far = false;
  int64_t given = 0;            ///< one of kernels/families/attention/attention_queries.cuh
  std::string extra = "i64:0";  ///< the further input, as an argument
  /// Expressions over the task's dims and attributes
  std::string heads_text, queries_text, keys_text, scale_text;

  static std::optional<AttentionForm> Of(const KernelSpec& spec);

  /// Tiles of keys that `rows` queries from `row` on see.
  int64_t Tiles(int64_t row, int64_t rows, int64_t tile_k) const;
  /// Keys that a query sees, on average.
  double SeenKeys() const;
  /// The tile that measured fastest on Hopper for this head size.
  ForwardTile Forward() const;
  /// Columns of outputs, rounded up to whole steps of 16; bytes of a row in panels of 64 columns.
  int64_t Columns() const { return CeilDiv(dim, 16) * 16; }
  int64_t RowBytes() const { return CeilDiv(dim, 64) * 128; }

  /// The constants of a source. STATISTICS = 1 stores the values that gradients need; `head_group`
  /// heads advance together.
  ConstantBlock Constants(int64_t statistics, int64_t head_group = 1) const;
  /// A tensor map of "q", "k" or another tensor, in boxes of `rows` rows.
  ArgBinding Map(const char* tensor, DType dtype, bool of_keys, int64_t rows) const;
  std::string KeyHeads() const {
    return sharing == 1 ? heads_text : "(" + heads_text + ") // " + std::to_string(sharing);
  }
};

}  // namespace atunner
