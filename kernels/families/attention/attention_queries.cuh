// How blocks of attention find their queries, which keys a query sees, and which scores weigh most.
#define MASKED \
  __int_as_float(NEGATIVE ? 0x7f800000 : 0xff800000)  // the infinity whose weight is zero

/// The input GIVEN besides queries, keys and values: none; the index of the last valid key of each
/// sequence; a mask that is added to the scores, for all sequences or for each.
enum { NOTHING, LAST_KEYS, MASK, MASKS };
constexpr bool ADDS = GIVEN >= MASK;

/// The score whose weight is larger.
DEVICE float stronger(float a, float b) { return NEGATIVE ? fminf(a, b) : fmaxf(a, b); }

/// A score plus the mask's element; its weight is a power of e.
DEVICE float with_mask(float score, float scale_log2, float more) {
  return fmaf(score, scale_log2 * 0.6931471805599453f, more);
}
/// The factor that turns differences to a row's strongest score into exponents of two. The least
/// numbers of a mask would become infinite: in a row that has nothing else, differences of equal
/// scores stay zero.
DEVICE float to_exponents(float strongest, float scale_log2) {
  return !ADDS ? scale_log2 : strongest < -2e38f ? 1.0f : 1.4426950408889634f;
}

/// The heads of all sequences, HEADS of each, their queries, and the further input. Query `row` is
/// aligned with key row + AHEAD.
struct Task {
  int heads, sequence;
  const void* given;

  DEVICE int tiles() const { return (sequence + TILE_Q - 1) / TILE_Q; }
  DEVICE int keys() const { return sequence + AHEAD; }
  /// The number of valid keys of a head.
  DEVICE int keys_of(int head) const {
    if (GIVEN != LAST_KEYS) return keys();
    return (int)min(max(((const long long*)given)[head / HEADS], 0ll), keys() - 1ll) + 1;
  }
  /// The row of the mask for a row of scores.
  template <class Element>
  DEVICE const Element* mask_of(int head, int row) const {
    return (const Element*)given +
           ((GIVEN == MASKS ? head / HEADS : 0) * (long long)sequence + min(row, sequence - 1)) *
               keys();
  }
};

/// TILE_Q queries of one head.
struct Queries {
  int first = 0, head = 0, keys = 0;
  long long base = 0, key_base = 0;  // of the head, in elements

  Queries() = default;
  /// The index-th of all pairs of a head and one of its tiles. HEAD_GROUP heads advance together,
  /// the last tiles first, which are the longest rows of a causal mask; keys and values that the
  /// heads share stay in L2.
  DEVICE Queries(int index, const Task& task) {
    const int tiles = task.tiles(), first_head = index / (tiles * HEAD_GROUP) * HEAD_GROUP,
              in_group = index % (tiles * HEAD_GROUP);
    const int group_heads = min(task.heads - first_head, HEAD_GROUP);
    first = (tiles - 1 - in_group / group_heads) * TILE_Q;
    head = first_head + in_group % group_heads;
    keys = task.keys_of(head);
    base = (long long)head * task.sequence * DIM,
    key_base = (long long)(head / SHARING) * task.keys() * DIM;
  }
  /// The first tile of keys that any of the queries sees, and one past the last tile that a row
  /// before `row` sees.
  DEVICE int begin() const { return WINDOW > 0 ? max(0, first + AHEAD - WINDOW + 1) / TILE_K : 0; }
  DEVICE int end(int row) const {
    return ((CAUSAL ? min(keys, row + AHEAD) : keys) + TILE_K - 1) / TILE_K;
  }
  DEVICE int end() const { return end(first + TILE_Q); }
  /// True if one of the `rows` rows from `row` on does not see some key of the tile.
  DEVICE bool partial(int tile, int row, int rows) const {
    return tile * TILE_K + TILE_K > (CAUSAL ? min(keys, row + AHEAD + 1) : keys) ||
           (WINDOW > 0 && tile * TILE_K <= row + rows - 1 + AHEAD - WINDOW);
  }
  /// The first and the last key that a row sees.
  DEVICE int first_key(int row) const { return WINDOW > 0 ? row + AHEAD - WINDOW + 1 : 0; }
  DEVICE int last_key(int row) const { return CAUSAL ? min(row + AHEAD, keys - 1) : keys - 1; }
};
