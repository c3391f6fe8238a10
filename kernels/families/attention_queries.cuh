// Where the blocks of attention find their queries, and which scores weigh most.
#define MASKED __int_as_float(NEGATIVE ? 0x7f800000 : 0xff800000)  // the infinity whose weight is zero

/// The score whose weight is larger.
DEVICE float stronger(float a, float b) { return NEGATIVE ? fminf(a, b) : fmaxf(a, b); }

/// The index-th of all pairs of a head and one of its `tiles`. HEAD_GROUP heads advance together, the last tiles first, which are the longest
/// rows of a causal mask; what the heads share stays in L2.
struct HeadTile {
  int head, tile;

  DEVICE HeadTile(int index, int heads, int tiles) {
    const int group = index / (tiles * HEAD_GROUP), in_group = index % (tiles * HEAD_GROUP);
    const int group_heads = min(heads - group * HEAD_GROUP, HEAD_GROUP);
    head = group * HEAD_GROUP + in_group % group_heads;
    tile = tiles - 1 - in_group / group_heads;
  }
};

/// TILE_Q queries of one head.
struct Queries {
  int first = 0, head = 0;
  long long base = 0;  // of the head, in elements

  Queries() = default;
  DEVICE Queries(int head, int tile, int sequence) : first(tile * TILE_Q), head(head), base((long long)head * sequence * DIM) {}
  static DEVICE Queries at(int index, int heads, int sequence) {
    const HeadTile place(index, heads, (sequence + TILE_Q - 1) / TILE_Q);
    return Queries(place.head, place.tile, sequence);
  }
};
