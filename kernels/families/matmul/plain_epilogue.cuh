// What becomes of a sum before it is stored: nothing. Products inside of graphs define the same as
// the graph has it (codegen/matmul/product_family.cpp): Row and Column hold what differs by row and
// by column alone, Element what differs by both: whoever stores asks for those of neighbours along
// a row together, and for many before it needs the first. Where a product is one of a pair, a sum
// comes with its twin.
struct Epilogue {
  static constexpr int SUMS = 1, COLUMN_BYTES = 0;
  static constexpr bool ELEMENTS = false;
  struct Row {};
  struct Column {};
  struct Element {};
  __device__ Row row(long long) const { return {}; }
  __device__ Column column(long long) const { return {}; }
  template <int COUNT>
  __device__ void elements(Element (&)[COUNT], long long, long long) const {}
  __device__ float operator()(float sum, float, Row, Column, Element, long long, long long) const {
    return sum;
  }
  __device__ float at(float sum, long long) const { return sum; }  // by the element's number
};
#define EPILOGUE_PARAMETERS
#define TWIN b
#define EPILOGUE(batch) Epilogue()
