#include "atunner/report/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atunner {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 320;
constexpr double kLeft = 78;
constexpr double kRight = 16;
constexpr double kTop = 14;
constexpr double kBottom = 46;

/// A logarithmic or linear scale from values to pixels.
class Axis {
 public:
  Axis(double low, double high, double from, double to, bool logarithmic)
      : from_(from), to_(to), logarithmic_(logarithmic) {
    low_ = logarithmic ? std::log10(low) : low;
    high_ = logarithmic ? std::log10(high) : high;
    if (!(high_ > low_)) high_ = low_ + 1;
  }
  double At(double value) const {
    const double v = logarithmic_ ? std::log10(value) : value;
    return from_ + (to_ - from_) * std::clamp((v - low_) / (high_ - low_), 0.0, 1.0);
  }

 private:
  double low_, high_, from_, to_;
  bool logarithmic_;
};

std::string Open(const std::string& title) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\"><title>{}</title>\n", kWidth,
                     kHeight, title);
}

std::string Label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     Escape(text));
}

std::string Frame(const std::string& x_title, const std::string& y_title) {
  std::string svg = fmt::format("<path class=\"axis\" d=\"M{:.0f} {:.0f}V{:.0f}H{:.0f}\"/>\n",
                                kLeft, kTop, kHeight - kBottom, kWidth - kRight);
  svg += Label((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", x_title);
  svg += fmt::format(
      "<text x=\"14\" y=\"{:.0f}\" text-anchor=\"middle\" transform=\"rotate(-90 14 "
      "{:.0f})\">{}</text>\n",
      (kTop + kHeight - kBottom) / 2, (kTop + kHeight - kBottom) / 2, Escape(y_title));
  return svg;
}

std::string HorizontalMark(const Axis& y, double value, const std::string& text) {
  return fmt::format("<path class=\"grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/>\n", kLeft, y.At(value),
                     kWidth - kRight) +
         Label(kLeft - 6, y.At(value) + 4, "end", text);
}

std::string VerticalMark(const Axis& x, double value, const std::string& text) {
  return fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.0f}V{:.0f}\"/>\n", x.At(value), kTop,
                     kHeight - kBottom) +
         Label(x.At(value), kHeight - kBottom + 16, "middle", text);
}

std::string Dot(double x, double y, const char* kind, double radius, const std::string& title) {
  return fmt::format(
      "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}</title></circle>\n",
      kind, x, y, radius, Escape(title));
}

std::string Flops(double rate) {
  return rate >= 1e12 ? fmt::format("{:g} TFLOP/s", rate / 1e12)
                      : fmt::format("{:g} GFLOP/s", rate / 1e9);
}

/// The entity of a character that HTML gives a meaning; "" for others.
std::string_view EntityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

/// The powers of ten in [low, high].
std::vector<double> PowersOfTen(double low, double high) {
  std::vector<double> powers;
  const auto last = static_cast<int>(std::floor(std::log10(high)));
  for (int i = static_cast<int>(std::ceil(std::log10(low))); i <= last; ++i)
    powers.push_back(std::pow(10, i));
  return powers;
}

/// Marks at 1, 2 and 5 times the powers of ten in [low, high], in ns.
std::string TimeMarks(const Axis& y, double low, double high) {
  std::string svg;
  for (const double value : PowersOfTen(low / 10, high)) {
    for (double step : {1.0, 2.0, 5.0}) {
      if (value * step >= low && value * step <= high)
        svg += HorizontalMark(y, value * step, FormatTime(value * step));
    }
  }
  return svg;
}

std::string NumberMarks(const Axis& x, double count) {
  std::string svg;
  const auto tick = static_cast<int64_t>(std::max(1.0, std::ceil(count / 8)));
  for (int64_t n = tick; n <= static_cast<int64_t>(count); n += tick)
    svg += VerticalMark(x, static_cast<double>(n), std::to_string(n));
  return svg;
}

std::string FloorLine(const Axis& y, double floor_ns) {
  return fmt::format("<path class=\"roof\" d=\"M{:.0f} {:.1f}H{:.0f}\"/>\n", kLeft, y.At(floor_ns),
                     kWidth - kRight) +
         Label(kWidth - kRight, y.At(floor_ns) - 4, "end", "physical floor");
}

/// A trial that was rejected has no time: its dot is at the upper edge.
std::string TrialDot(const Axis& x, const Axis& y, const Trial& trial) {
  const double at = x.At(static_cast<double>(trial.number));
  const auto ns = trial.ObjectiveNs();
  return ns ? Dot(at, y.At(*ns), "trial", 2.5,
                  fmt::format("trial {}: {}", trial.number, FormatTime(*ns)))
            : Dot(at, kTop + 4, "bad", 2,
                  fmt::format("trial {}: {}", trial.number, Name(trial.verdict.kind)));
}

std::string BestSoFarLine(const Axis& x, const Axis& y,
                          const std::vector<std::pair<int64_t, double>>& best) {
  std::string path;
  for (const auto& [number, ns] : best) {
    const double at = x.At(static_cast<double>(number));
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", at, y.At(ns))
                         : fmt::format("H{:.1f}V{:.1f}", at, y.At(ns));
  }
  return fmt::format("<path class=\"best\" d=\"{}H{:.0f}\"/>\n", path, kWidth - kRight);
}

struct RooflinePoint {
  std::string name;
  double rate = 0;  ///< FLOP/s
};

std::vector<RooflinePoint> RooflinePoints(const Report& report, double flops) {
  std::vector<RooflinePoint> points;
  for (const Baseline& baseline : report.baselines) {
    if (const auto ns = baseline.ObjectiveNs())
      points.push_back({baseline.name, flops / *ns * 1e9});
  }
  if (const auto best = report.best ? report.best->ObjectiveNs() : std::nullopt)
    points.push_back({"best", flops / *best * 1e9});
  return points;
}

/// Marks at the powers of ten in [low, high].
template <typename Mark>
std::string DecadeMarks(double low, double high, const Mark& mark) {
  std::string svg;
  for (const double value : PowersOfTen(low, high)) svg += mark(value);
  return svg;
}

/// The bandwidth's slope from `low_x` FLOP per byte up to the peak, then the peak.
std::string Roof(const Axis& x, const Axis& y, double low_x, double bandwidth, double peak) {
  return fmt::format("<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.0f}\"/>\n",
                     x.At(low_x), y.At(low_x * bandwidth), x.At(peak / bandwidth), y.At(peak),
                     kWidth - kRight) +
         Label(kWidth - kRight, y.At(peak) - 5, "end",
               Flops(std::round(peak / 1e10) * 1e10) + " peak");
}

std::string RooflineDot(double x, double y, const RooflinePoint& point) {
  const bool is_best = point.name == "best";
  return Dot(x, y, is_best ? "winner" : "baseline", is_best ? 5 : 4,
             point.name + ": " + Flops(point.rate)) +
         Label(x + 9, y + 4, "start", point.name);
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const std::string_view entity = EntityOf(c);
    out += entity;
    if (entity.empty() && (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t'))
      out += c;
  }
  return out;
}

std::string ConvergencePicture(const Report& report) {
  const auto best = ConvergenceOf(report);
  if (best.empty()) return "";
  double highest = 0;
  for (const Trial& trial : report.trials)
    highest = std::max(highest, trial.ObjectiveNs().value_or(0));
  const double lowest = best.back().second;
  const double bottom = report.floor_ns > 0 ? std::min(lowest, report.floor_ns) : lowest;
  const auto count = static_cast<double>(std::max<int64_t>(2, report.trials.back().number));
  const Axis x(1, count, kLeft, kWidth - kRight, false);
  const Axis y(bottom * 0.9, highest * 1.1, kHeight - kBottom, kTop, true);
  std::string svg = Open("time of each trial and of the best so far");
  svg += Frame("trial", "time (" + std::string(Name(report.evidence)) + ")");
  svg += TimeMarks(y, bottom * 0.9, highest * 1.1) + NumberMarks(x, count);
  if (report.floor_ns > 0) svg += FloorLine(y, report.floor_ns);
  for (const Trial& trial : report.trials) svg += TrialDot(x, y, trial);
  return svg + BestSoFarLine(x, y, best) + "</svg>\n";
}

std::string RooflinePicture(const Report& report) {
  const double bytes = MinimumBytes(report.spec, report.spec.dims).value_or(0);
  const double flops = FlopCount(report.spec, report.spec.dims).value_or(0);
  const double peak = report.profile.PeakFlops(report.spec.compute_dtype, report.spec.tensor_cores);
  const double bandwidth = report.profile.dram_gbps * 1e9;
  if (!(bytes > 0) || !(flops > 0) || !(peak > 0) || !(bandwidth > 0)) return "";
  const double intensity = flops / bytes;
  const double ridge = peak / bandwidth;
  const double low_x = std::min(intensity, ridge) / 8;
  const double high_x = std::max(intensity, ridge) * 8;
  const std::vector<RooflinePoint> points = RooflinePoints(report, flops);
  double low_y = low_x * bandwidth;
  for (const RooflinePoint& point : points) low_y = std::min(low_y, point.rate / 2);
  const Axis x(low_x, high_x, kLeft, kWidth - kRight, true);
  const Axis y(low_y, peak * 2, kHeight - kBottom, kTop, true);
  std::string svg = Open("roofline: attainable arithmetic over arithmetic intensity");
  svg += Frame("FLOP per byte", "FLOP/s (" + std::string(Name(report.evidence)) + ")");
  svg += DecadeMarks(low_y, peak * 2, [&](double at) { return HorizontalMark(y, at, Flops(at)); });
  svg += DecadeMarks(low_x, high_x,
                     [&](double at) { return VerticalMark(x, at, fmt::format("{:g}", at)); });
  svg += Roof(x, y, low_x, bandwidth, peak);
  for (const RooflinePoint& point : points)
    svg += RooflineDot(x.At(intensity), y.At(point.rate), point);
  return svg + "</svg>\n";
}

}  // namespace atunner
