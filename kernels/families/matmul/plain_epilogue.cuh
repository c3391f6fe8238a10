// The epilogue that does nothing. Products inside of graphs define the same functions with the
// graph's arithmetic (codegen/matmul/product_family.cpp): Row and Column hold the values that
// depend on the row or the column alone, Element those that depend on both. A store loads the
// Elements of neighbours along a row together, and many of them before it needs the first. In a
// pair of products, a sum comes with that of the second product.
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
