// The functions that rows of aten.def name. `text` is the row's last column.
#pragma once

#include <string_view>
#include <vector>

#include "atunner/graph/library/windows.h"
#include "atunner/importers/aten/aten_call.h"

namespace atunner::importers {

#define ATUNNER_BUILDER(name) std::vector<graph::Value> name(AtenCall& call, std::string_view text)

// pointwise.cpp
ATUNNER_BUILDER(Expression);   ///< text: an expression over the arguments' names
ATUNNER_BUILDER(FromLibrary);  ///< text: "leaky_relu slope=negative_slope"
ATUNNER_BUILDER(AddScaled);    ///< text: add, sub or rsub
ATUNNER_BUILDER(Power);
ATUNNER_BUILDER(Where);
ATUNNER_BUILDER(MaskedFill);
ATUNNER_BUILDER(Clamp);
ATUNNER_BUILDER(Divide);
ATUNNER_BUILDER(Gelu);
ATUNNER_BUILDER(Softplus);
ATUNNER_BUILDER(Glu);
ATUNNER_BUILDER(Prelu);
ATUNNER_BUILDER(Same);  ///< the operand: copies, dropout in inference
ATUNNER_BUILDER(Dropout);
ATUNNER_BUILDER(Convert);

// constants.cpp
ATUNNER_BUILDER(Full);      ///< text: the value, or empty for the argument fill_value
ATUNNER_BUILDER(FullLike);  ///< likewise
ATUNNER_BUILDER(Arange);
ATUNNER_BUILDER(ScalarTensor);
ATUNNER_BUILDER(Uniform);  ///< random numbers in [0, 1) by Philox

// layout.cpp
ATUNNER_BUILDER(View);
ATUNNER_BUILDER(Flatten);
ATUNNER_BUILDER(Unflatten);
ATUNNER_BUILDER(Squeeze);
ATUNNER_BUILDER(Unsqueeze);
ATUNNER_BUILDER(Permute);
ATUNNER_BUILDER(TransposeAxes);
ATUNNER_BUILDER(MatrixTranspose);
ATUNNER_BUILDER(Expand);
ATUNNER_BUILDER(Repeat);
ATUNNER_BUILDER(Flip);
ATUNNER_BUILDER(ConstantPad);
ATUNNER_BUILDER(Triangle);  ///< text: tril or triu

// pieces.cpp
ATUNNER_BUILDER(Concatenate);
ATUNNER_BUILDER(Stack);
ATUNNER_BUILDER(SliceAxis);
ATUNNER_BUILDER(Narrow);
ATUNNER_BUILDER(Select);
ATUNNER_BUILDER(Split);
ATUNNER_BUILDER(SplitWithSizes);
ATUNNER_BUILDER(Chunk);
ATUNNER_BUILDER(Unbind);
ATUNNER_BUILDER(Roll);
ATUNNER_BUILDER(Unfold);

// indexing.cpp
ATUNNER_BUILDER(Embedding);
ATUNNER_BUILDER(IndexSelect);
ATUNNER_BUILDER(IndexByTensors);
ATUNNER_BUILDER(GatherAlong);
ATUNNER_BUILDER(SortAlong);
ATUNNER_BUILDER(TopK);

// products.cpp
ATUNNER_BUILDER(MatMul);
ATUNNER_BUILDER(AddMatMul);
ATUNNER_BUILDER(Linear);
ATUNNER_BUILDER(Attention);
ATUNNER_BUILDER(LibraryAttention);  ///< text: attention_gqa or its gradient

// reductions.cpp
ATUNNER_BUILDER(Reduction);  ///< text: the library's operator
ATUNNER_BUILDER(Extreme);    ///< text: max or min; values and indices along an axis
ATUNNER_BUILDER(Variance);   ///< text: var or std
ATUNNER_BUILDER(VarianceAndMean);
ATUNNER_BUILDER(PNorm);
ATUNNER_BUILDER(AlongAxis);    ///< text: softmax, log_softmax, cumsum, cumprod
ATUNNER_BUILDER(SafeSoftmax);  ///< zeros in rows of minus infinity

// norms.cpp
ATUNNER_BUILDER(LayerNorm);
ATUNNER_BUILDER(LayerNormWithStatistics);
ATUNNER_BUILDER(GroupNorm);
ATUNNER_BUILDER(BatchNorm);
ATUNNER_BUILDER(BatchNormWithUpdate);  ///< text: results before the running moments, 3 or 4
ATUNNER_BUILDER(InstanceNorm);

// windows.cpp
ATUNNER_BUILDER(Convolution);            ///< text: the argument that says "transposed", or empty
ATUNNER_BUILDER(ConvolutionOfAxes);      ///< text: the number of axes
ATUNNER_BUILDER(TransposedConvolution);  ///< text: the number of axes
ATUNNER_BUILDER(MaxPool);                ///< text: the number of axes
ATUNNER_BUILDER(AvgPool);                ///< text: the number of axes
ATUNNER_BUILDER(AdaptivePool);           ///< text: the number of axes and "avg" or "max"

// losses.cpp
ATUNNER_BUILDER(PairLoss);  ///< text: the expression over self and target
ATUNNER_BUILDER(NllLoss);
ATUNNER_BUILDER(CrossEntropy);

// backward.cpp
ATUNNER_BUILDER(GeluBackward);
ATUNNER_BUILDER(SoftmaxBackward);
ATUNNER_BUILDER(LogSoftmaxBackward);
ATUNNER_BUILDER(LayerNormBackward);
ATUNNER_BUILDER(BatchNormBackward);
ATUNNER_BUILDER(EmbeddingBackward);
ATUNNER_BUILDER(SliceBackward);
ATUNNER_BUILDER(SelectBackward);

// windows_backward.cpp
ATUNNER_BUILDER(ConvolutionBackward);
ATUNNER_BUILDER(MaxPoolBackward);  ///< text: the number of axes

// losses.cpp
ATUNNER_BUILDER(NllLossBackward);
ATUNNER_BUILDER(MseLossBackward);

#undef ATUNNER_BUILDER

// windows.cpp, for the gradients too
/// The geometry of a convolution's windows, with "same" and "valid" as paddings too.
graph::WindowAxes ConvolutionAxes(AtenCall& call, size_t n, graph::Value w);
/// The geometry of pooling of x in windows of `size`.
graph::WindowAxes PoolingAxes(AtenCall& call, graph::Value x, size_t n, const Integers& size);
/// The largest element of each window; of equal ones the first takes the gradient.
graph::Value LargestOfWindows(graph::GraphBuilder& g, graph::Value x, const Integers& size,
                              const graph::WindowAxes& axes);

/// A result of a loss over all elements: 0 leaves it, 1 is the mean and 2 the sum.
graph::Value Reduced(AtenCall& call, graph::Value x, int64_t reduction);

}  // namespace atunner::importers
