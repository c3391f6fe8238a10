#include "atunner/workflow/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace atunner::workflow {
namespace {

using testing::HasSubstr;

Result<NodeResult> Nothing(const NodeContext&) { return NodeResult(); }

Graph Loop() {
  GraphBuilder builder("a < b");
  builder.Node("plan", Nothing).Node("left", Nothing).Node("right", Nothing).Node("join", Nothing);
  builder.Edge(kStart, "plan").Edge("plan", "left").Edge("plan", "right");
  builder.Join({"left", "right"}, "join");
  builder.Branch("join", [](const State&) { return std::vector<Target>(); },
                 {"plan", std::string(kEnd)});
  return builder.Build().value();
}

TEST(Drawing, MermaidNamesNodesAndKindsOfEdges) {
  const std::string text = MermaidOf(Loop(), {{"plan", 3}});
  EXPECT_EQ(text.find("flowchart TD\n"), 0u);
  EXPECT_THAT(text, HasSubstr("n0[\"plan ×3\"]"));
  EXPECT_THAT(text, HasSubstr("n4 --> n0"));
  EXPECT_THAT(text, HasSubstr("n1 ==> n3"));
  EXPECT_THAT(text, HasSubstr("n3 -.-> n0"));
  EXPECT_THAT(text, HasSubstr("n3 -.-> n5"));
  EXPECT_THAT(text, HasSubstr("style n0"));
}

TEST(Drawing, SvgHasABoxForEachNodeAndTheEnds) {
  const std::string text = SvgOf(Loop());
  EXPECT_THAT(text, HasSubstr("<title>a &lt; b</title>"));
  size_t boxes = 0;
  for (size_t at = text.find("<rect"); at != std::string::npos; at = text.find("<rect", at + 1))
    ++boxes;
  EXPECT_EQ(boxes, 6u);
  EXPECT_THAT(text, HasSubstr("</svg>"));
}

}  // namespace
}  // namespace atunner::workflow
