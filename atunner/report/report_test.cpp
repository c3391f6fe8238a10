#include "atunner/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "atunner/report/pictures.h"

namespace atunner {
namespace {

using testing::HasSubstr;
using testing::Not;

Trial Correct(int64_t number, int64_t a, double ns) {
  Trial trial;
  trial.number = number;
  trial.candidate.what = Configuration{{a, std::string("x")}};
  trial.estimate.emplace();
  trial.estimate->time_ns = ns;
  trial.estimate->limiter = "dram";
  trial.estimate->parts = {{"dram", ns, false}, {"issue", ns / 2, true}};
  return trial;
}

Report Sample() {
  Report report;
  report.run = "20261121-0000-copy-1234";
  report.command = "atunner optimize --operator <copy> & more";
  report.device = "A100";
  report.profile.name = "A100";
  report.profile.dram_gbps = 2000;
  report.profile.fp32_per_clk = 64;
  report.profile.sms = 108;
  report.profile.clock_ghz = 1.41;
  report.spec.name = "copy";
  report.spec.dims = {{"n", 1 << 20}};
  report.spec.flops = Expr::MustParse("n");
  report.spec.args = {{.name = "x",
                       .role = Role::kInput,
                       .dtype = DType::kFloat32,
                       .shape = {Expr::MustParse("n")},
                       .value = {},
                       .fill = {}}};
  report.space.parameters = {{"a", {int64_t{1}, int64_t{2}}, ""},
                             {"b", {std::string("x"), std::string("</script><b>")}, ""}};
  report.trials = {Correct(1, 1, 9000), Correct(2, 2, 12000), Correct(3, 1, 6000)};
  Trial bad;
  bad.number = 4;
  bad.candidate.what = Configuration{{int64_t{2}, std::string("</script><b>")}};
  bad.verdict = {VerdictKind::kWrongResult, "off by <one>", {}, false};
  report.trials.push_back(bad);
  report.best = report.trials[2];
  Baseline naive;
  naive.name = "naive";
  naive.estimate = report.trials[1].estimate;
  report.baselines = {naive};
  report.space_size = 4;
  report.floor_ns = 2097;
  report.stop_reason = "trial budget spent";
  return report;
}

TEST(Report, ConvergenceKeepsImprovementsOnly) {
  EXPECT_EQ(ConvergenceOf(Sample()),
            (std::vector<std::pair<int64_t, double>>{{1, 9000}, {3, 6000}}));
}

TEST(Report, RejectionsAreGroupedWithAnExample) {
  const auto rejections = RejectionsOf(Sample());
  ASSERT_EQ(rejections.size(), 1u);
  EXPECT_EQ(rejections[0].verdict, "wrong-result");
  EXPECT_EQ(rejections[0].example, "off by <one>");
}

TEST(Report, MarkdownSaysOneWordAndTheRatio) {
  const std::string text = RenderMarkdown(Sample());
  EXPECT_THAT(text, HasSubstr("| kernel | predicted |"));
  EXPECT_THAT(text, Not(HasSubstr("measured")));
  EXPECT_THAT(text, HasSubstr("| naive | 12.00 us |"));
  EXPECT_THAT(text, HasSubstr("| 2.00 |"));
  EXPECT_THAT(text, HasSubstr("35 % of the floor"));
  EXPECT_THAT(text, HasSubstr("`a=1, b=x`"));
}

TEST(Report, AFrontIsShownWhereThereIsOne) {
  Report report = Sample();
  EXPECT_THAT(RenderMarkdown(report), Not(HasSubstr("Pareto")));
  EXPECT_THAT(RenderHtml(report), Not(HasSubstr("Pareto")));
  Trial lean = Correct(2, 2, 12000);
  lean.memory_bytes = 2048;
  report.front = {Correct(3, 1, 6000), lean};
  EXPECT_THAT(RenderMarkdown(report),
              HasSubstr("| 6.00 us | 0.0 KiB | - | a=1, b=x |\n| 12.00 us | 2.0 KiB | - | a=2"));
  EXPECT_THAT(RenderHtml(report), HasSubstr("2.0 KiB"));
}

TEST(Report, HtmlEscapesWhatUsersWrite) {
  const std::string html = RenderHtml(Sample());
  EXPECT_THAT(html, HasSubstr("--operator &lt;copy&gt; &amp; more"));
  EXPECT_THAT(html, HasSubstr("off by &lt;one&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>\\u003cb>"));
  EXPECT_THAT(html, Not(HasSubstr("measured")));
  // The page loads no other file.
  EXPECT_FALSE(std::regex_search(html, std::regex("(src|href)=")));
}

/// The first tag that is not closed in order; "" if the page is well-formed.
std::string Unbalanced(const std::string& html) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-zA-Z][a-zA-Z0-9]*)([^<>]*?)(/?)>");
  std::string body = std::regex_replace(html, std::regex("//<!\\[CDATA\\[[^]*?//\\]\\]>"), "");
  body = std::regex_replace(body, std::regex("<!DOCTYPE html>"), "");
  for (std::sregex_iterator it(body.begin(), body.end(), tag), end; it != end; ++it) {
    if ((*it)[4].length() > 0) continue;
    if ((*it)[1].length() == 0) {
      open.push_back((*it)[2]);
    } else if (open.empty() || open.back() != (*it)[2]) {
      return "</" + (*it)[2].str() + ">";
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

TEST(Report, HtmlIsWellFormed) {
  EXPECT_EQ(Unbalanced(RenderHtml(Sample())), "");
  Report nothing = Sample();
  nothing.trials.clear();
  nothing.best.reset();
  nothing.baselines.clear();
  nothing.space.parameters.clear();
  EXPECT_EQ(Unbalanced(RenderHtml(nothing)), "");
  EXPECT_THAT(RenderHtml(nothing), HasSubstr("No correct kernel was found"));
}

/// Every coordinate lies in the picture.
void ExpectInside(const std::string& svg) {
  const std::regex number("(cx|cy|x|y)=\"(-?[0-9.]+|nan|inf)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), number), end; it != end; ++it) {
    const double value = std::stod((*it)[2]);
    EXPECT_GE(value, 0) << svg;
    EXPECT_LE(value, (*it)[1].str().back() == 'x' ? 640 : 320) << svg;
  }
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Pictures, StayInsideTheirFrame) {
  Report report = Sample();
  ASSERT_NE(ConvergencePicture(report), "");
  ASSERT_NE(RooflinePicture(report), "");
  ExpectInside(ConvergencePicture(report));
  ExpectInside(RooflinePicture(report));
  report.trials = {Correct(1, 1, 5)};  // one trial, faster than the floor
  ExpectInside(ConvergencePicture(report));
  report.trials = {Correct(1, 1, 7), Correct(2, 2, 7)};  // no spread
  report.floor_ns = 0;
  ExpectInside(ConvergencePicture(report));
}

TEST(Pictures, NothingCorrectOrNoWorkIsNoPicture) {
  Report report = Sample();
  report.trials = {report.trials[3]};
  EXPECT_EQ(ConvergencePicture(report), "");
  report.spec.flops = 0;
  EXPECT_EQ(RooflinePicture(report), "");
}

TEST(Report, TimesHaveFourFigures) {
  EXPECT_EQ(FormatTime(312.4), "312 ns");
  EXPECT_EQ(FormatTime(4100), "4.10 us");
  EXPECT_EQ(FormatTime(1.2344e6), "1.234 ms");
  EXPECT_EQ(FormatTime(2e9), "2.000 s");
}

}  // namespace
}  // namespace atunner
