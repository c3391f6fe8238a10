// What becomes of a sum before it is stored: nothing. Products inside of graphs define the same as the graph has it
// (codegen/product_family.cpp): Row and Column hold what differs by row and by column alone,
// Element what differs by both: whoever stores asks for many of those before it needs the first.
struct Finish {
  static constexpr int COLUMN_BYTES = 0;
  struct Row {};
  struct Column {};
  struct Element {};
  __device__ Row row(long long) const { return {}; }
  __device__ Column column(long long) const { return {}; }
  __device__ Element element(long long, long long) const { return {}; }
  __device__ float operator()(float sum, Row, Column, Element, long long, long long) const { return sum; }
  __device__ float at(float sum, long long) const { return sum; }  // by the element's number
};
#define FINISH_PARAMETERS
#define FINISH(batch) Finish()
