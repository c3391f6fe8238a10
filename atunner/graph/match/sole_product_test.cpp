#include "atunner/graph/match/sole_product.h"

#include <gtest/gtest.h>

#include <string>

#include "atunner/graph/text.h"

namespace atunner::graph {
namespace {

ValidGraph Part(const std::string& behind) {
  return Parse(
             "graph part\ninput a: float32[1, 8, 16]\ninput b: float32[32, 16]\n"
             "input scale: float32[1, 32]\n"
             "p = contract(a, b, equation=\"bmk,nk->bmn\")\n" +
                 behind,
             "part")
      .value();
}

TEST(MayEndBehindProduct, MapsAndLayoutsMay) {
  EXPECT_TRUE(MayEndBehindProduct(Part("output y = p\n")));
  EXPECT_TRUE(
      MayEndBehindProduct(Part("r = maximum(p * scale, 0)\nt = transpose(r, order=[0, 2, 1])\n"
                               "y = slice(t, axis=1, start=0, stop=16)\noutput y\n")));
}

TEST(MayEndBehindProduct, TheNextConvolutionsWindowsMayNot) {
  EXPECT_FALSE(MayEndBehindProduct(Part("y = pad(p, axis=1, low=1, high=1)\noutput y\n")));
  EXPECT_FALSE(MayEndBehindProduct(Part("y = window(p, axis=1, size=3)\noutput y\n")));
  EXPECT_FALSE(MayEndBehindProduct(Part("y = reduce_max(p, axes=[2])\noutput y\n")));
}

TEST(MayEndBehindProduct, SeveralOutputsMayNot) {
  EXPECT_FALSE(MayEndBehindProduct(Part("z = exp(p)\noutput p\noutput z\n")));
  EXPECT_FALSE(MayEndBehindProduct(Part("z = exp(b)\noutput p\noutput z\n")));
}

TEST(MayEndBehindProduct, NothingIsSaidOfVectorProductsAndPairs) {
  const auto vector = Parse(
      "graph part\ninput a: float32[8, 16]\ninput b: float32[16]\n"
      "p = contract(a, b, equation=\"mk,k->m\")\n"
      "y = reduce_max(p, axes=[0])\noutput p\noutput y\n",
      "part");
  EXPECT_TRUE(MayEndBehindProduct(vector.value()));
  EXPECT_TRUE(MayEndBehindProduct(
      Part("q = contract(p, b, equation=\"bmn,nk->bmk\")\noutput p\noutput q\n")));
}

}  // namespace
}  // namespace atunner::graph
