// The functions that rows of onnx.def name. `text` is the row's last column.
#pragma once

#include <string_view>
#include <vector>

#include "atunner/importers/onnx/onnx_call.h"

namespace atunner::importers::onnx {

#define ATUNNER_BUILDER(name) std::vector<graph::Value> name(OnnxCall& call, std::string_view text)

// pointwise_nodes.cpp
ATUNNER_BUILDER(Elementwise);  ///< text: "select(a >= 0, a, $alpha * a); alpha=0.01"
ATUNNER_BUILDER(Variadic);     ///< text: an expression over a and b, or "mean"
ATUNNER_BUILDER(Same);         ///< the first input
ATUNNER_BUILDER(Convert);      ///< text: "" for Cast, "like" for CastLike
ATUNNER_BUILDER(Clip);
ATUNNER_BUILDER(Power);
ATUNNER_BUILDER(Divide);
ATUNNER_BUILDER(Modulo);
ATUNNER_BUILDER(BitShift);
ATUNNER_BUILDER(IsInfinite);
ATUNNER_BUILDER(Gelu);
ATUNNER_BUILDER(Dropout);
ATUNNER_BUILDER(Quantize);
ATUNNER_BUILDER(Dequantize);
ATUNNER_BUILDER(DynamicQuantize);

// shape_nodes.cpp
ATUNNER_BUILDER(Reshape);
ATUNNER_BUILDER(Flatten);
ATUNNER_BUILDER(Squeeze);
ATUNNER_BUILDER(Unsqueeze);
ATUNNER_BUILDER(Transpose);
ATUNNER_BUILDER(Expand);
ATUNNER_BUILDER(Tile);
ATUNNER_BUILDER(DepthToSpace);
ATUNNER_BUILDER(SpaceToDepth);
ATUNNER_BUILDER(ShapeOf);
ATUNNER_BUILDER(SizeOfAll);
ATUNNER_BUILDER(Concat);
ATUNNER_BUILDER(Split);
ATUNNER_BUILDER(Slice);
ATUNNER_BUILDER(Pad);
ATUNNER_BUILDER(CenterCropPad);
ATUNNER_BUILDER(Trilu);

// constant_nodes.cpp
ATUNNER_BUILDER(ConstantNode);
ATUNNER_BUILDER(ConstantOfShape);
ATUNNER_BUILDER(Range);
ATUNNER_BUILDER(EyeLike);
ATUNNER_BUILDER(OneHot);
ATUNNER_BUILDER(SignalWindow);  ///< text: hann, hamming or blackman

// index_nodes.cpp
ATUNNER_BUILDER(Gather);
ATUNNER_BUILDER(GatherElements);
ATUNNER_BUILDER(GatherND);
ATUNNER_BUILDER(ScatterElements);
ATUNNER_BUILDER(ScatterND);
ATUNNER_BUILDER(ReverseSequence);
ATUNNER_BUILDER(Compress);
ATUNNER_BUILDER(TopK);

// known_nodes.cpp
ATUNNER_BUILDER(NonMaxSuppression);
ATUNNER_BUILDER(NonZero);
ATUNNER_BUILDER(Unique);

// reduction_nodes.cpp
ATUNNER_BUILDER(Reduction);   ///< text: sum, mean, max, min, prod, l1, l2, log_sum, …
ATUNNER_BUILDER(ArgExtreme);  ///< text: max or min
ATUNNER_BUILDER(Cumulative);  ///< text: sum or prod
ATUNNER_BUILDER(Softmax);     ///< text: softmax, log_softmax or hardmax
ATUNNER_BUILDER(LpNormalization);
ATUNNER_BUILDER(MeanVarianceNormalization);
ATUNNER_BUILDER(ClassLoss);  ///< text: nll or cross_entropy

// product_nodes.cpp
ATUNNER_BUILDER(MatMul);
ATUNNER_BUILDER(Gemm);
ATUNNER_BUILDER(Einsum);
ATUNNER_BUILDER(MatMulInteger);
ATUNNER_BUILDER(QuantisedMatMul);

// window_nodes.cpp
ATUNNER_BUILDER(Convolution);
ATUNNER_BUILDER(ConvolutionOfIntegers);
ATUNNER_BUILDER(QuantisedConvolution);
ATUNNER_BUILDER(TransposedConvolution);
ATUNNER_BUILDER(MaxPool);
ATUNNER_BUILDER(AveragePool);
ATUNNER_BUILDER(LpPool);
ATUNNER_BUILDER(MaxUnpool);
ATUNNER_BUILDER(Col2Im);
ATUNNER_BUILDER(GlobalPool);  ///< text: mean, max or lp
ATUNNER_BUILDER(Resize);      ///< text: "" for Resize, "upsample"

// norm_nodes.cpp
ATUNNER_BUILDER(BatchNormalization);
ATUNNER_BUILDER(InstanceNormalization);
ATUNNER_BUILDER(LayerNormalization);
ATUNNER_BUILDER(GroupNormalization);
ATUNNER_BUILDER(RmsNormalization);
ATUNNER_BUILDER(LocalResponseNormalization);

// attention_nodes.cpp
ATUNNER_BUILDER(Attention);
ATUNNER_BUILDER(RotaryEmbedding);
ATUNNER_BUILDER(LinearAttention);
ATUNNER_BUILDER(CausalConvWithState);
ATUNNER_BUILDER(TensorScatter);

// signal_nodes.cpp
ATUNNER_BUILDER(Dft);
ATUNNER_BUILDER(Stft);
ATUNNER_BUILDER(MelWeightMatrix);

// sampling_nodes.cpp
ATUNNER_BUILDER(GridSample);
ATUNNER_BUILDER(AffineGrid);
ATUNNER_BUILDER(RoiAlign);

// recurrent_nodes.cpp
ATUNNER_BUILDER(Recurrent);  ///< text: rnn, gru or lstm

#undef ATUNNER_BUILDER

}  // namespace atunner::importers::onnx
