#include "atunner/codegen/attention/attention_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "atunner/codegen/template/family.h"
#include "atunner/codegen/template/wgmma_text.h"
#include "atunner/operators/library_task.h"
#include "atunner/operators/part_task.h"

namespace atunner {
namespace {

/// The inputs that a library operator has besides queries, keys and values.
struct Named {
  const char* name;
  const char* extra;
  int64_t given;
};
constexpr Named kNamed[] = {{"attention_gqa", nullptr, 0},
                            {"attention_varlen", "last", 1},
                            {"attention_masked", "mask", 2},
                            {"attention_gqa_backward", nullptr, 0}};

AttentionForm OfClass(const KernelSpec& spec) {
  AttentionForm form;
  form.heads = spec.dims.at("heads");
  form.queries = form.keys = spec.dims.at("sequence");
  form.dim = spec.dims.at("dim");
  form.causal = Truthy(spec.attributes.at("causal"));
  form.scale = ToDouble(spec.attributes.at("scale"));
  form.heads_text = "heads", form.scale_text = "scale";
  form.queries_text = form.keys_text = "sequence";
  return form;
}

}  // namespace

std::optional<AttentionForm> AttentionForm::Of(const KernelSpec& spec) {
  if (IsOperator(spec, "flash_attention")) return OfClass(spec);
  const auto named = std::ranges::find(kNamed, spec.name, &Named::name);
  const std::vector<int64_t> q = ExtentsOf(spec, "q"), k = ExtentsOf(spec, "k");
  if (named == std::end(kNamed) || !IsLibraryTask(spec, named->name, {q, k})) return std::nullopt;
  AttentionForm form;
  form.members = q[1], form.sharing = q[1] / k[1];
  form.heads = q[0] * q[1], form.queries = q[2], form.keys = k[2], form.dim = q[3];
  form.causal = SettingOr(spec, "causal", 0) != 0;
  form.window = static_cast<int64_t>(SettingOr(spec, "window", 0));
  form.scale = SettingOr(spec, "scale", 1 / std::sqrt(Real(form.dim)));
  form.given = named->given + (SettingOr(spec, "per_sequence", 0) != 0 ? 1 : 0);
  // A mask's finite numbers, such as -1e10, may make all scores of a row large.
  form.far = form.given >= 2 || SettingOr(spec, kScoresOfAnySize, 0) != 0;
  if (named->extra != nullptr) form.extra = named->extra;
  form.heads_text = fmt::format("({}) * {}", spec.FindArg("q")->shape[0].text(), q[1]);
  form.queries_text = std::to_string(form.queries), form.keys_text = std::to_string(form.keys);
  form.scale_text = fmt::format("{:.17g}", form.scale);
  // 31-bit counters; and rows that see no key at all have no weights.
  const bool counted = std::max(form.queries, form.keys) + form.window < (1 << 30) &&
                       form.dim <= 256;
  const bool floats = SizeOf(spec.compute_dtype) == 2 || spec.compute_dtype == DType::kFloat32;
  return counted && floats && (!form.causal || form.keys >= form.queries) ? std::optional(form)
                                                                          : std::nullopt;
}

int64_t AttentionForm::Tiles(int64_t row, int64_t rows, int64_t tile_k) const {
  const int64_t ahead = keys - queries;
  const int64_t end = causal ? std::min(keys, row + rows + ahead) : keys;
  const int64_t begin = window > 0 ? std::max<int64_t>(0, row + ahead - window + 1) / tile_k : 0;
  return CeilDiv(end, tile_k) - begin;
}

double AttentionForm::SeenKeys() const {
  const double all = Real(keys) - (causal ? 0.5 * Real(queries) : 0);
  return window > 0 ? std::min(all, Real(window)) : all;
}

ForwardTile AttentionForm::Forward() const {
  const bool one_per_sm = !causal || queries <= 8192 || window > 0;
  const bool two_groups = dim > 64 || given >= 2 || (causal && queries <= 2048);
  return {two_groups ? 128 : 192, dim > 128 ? 80 : 128, one_per_sm};
}

ConstantBlock AttentionForm::Constants(int64_t statistics, int64_t head_group) const {
  ConstantBlock block;
  block.Define("STATISTICS", statistics).Int("DIM", dim).Bool("CAUSAL", causal).Bool("FAR", far);
  block.Int("WINDOW", window, "latest keys that a query sees; 0 = all");
  block.Int("AHEAD", keys - queries, "keys in front of the first query's own");
  block.Int("SHARING", sharing, "query heads that share a key head")
      .Int("HEADS", members, "of a sequence");
  block.Int("HEAD_GROUP", head_group)
      .Int("GIVEN", given)
      .Bool("WHOLE_UNITS", given >= 2 && keys % 8 == 0);
  return block.Bool("NEGATIVE", scale < 0 && given < 2,
                    "the scale's sign: the least score weighs most");
}

ArgBinding AttentionForm::Map(const char* tensor, DType dtype, bool of_keys, int64_t rows) const {
  const std::string &length = of_keys ? keys_text : queries_text,
                    count = of_keys ? KeyHeads() : heads_text;
  return BoxMap(tensor, dtype, {dim, Expr::MustParse(length), Expr::MustParse(count)},
                {64, rows, 1});
}

}  // namespace atunner
