#include "atunner/evidence/ncu_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "atunner/evidence/measured.h"

namespace atunner::evidence {
namespace {

using Row = std::vector<std::string>;

/// Takes one line off the text, without its end.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// The cells of the next row; a quoted cell may hold commas, doubled quotes and line ends.
Result<Row> TakeRow(std::string_view& text) {
  Row row(1);
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size() && (quoted || text[i] != '\n'); ++i) {
    const char c = text[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < text.size() && text[i + 1] == '"';
      if (doubled)
        row.back() += text[++i];
      else
        quoted = !quoted;
    } else if (c == ',' && !quoted) {
      row.emplace_back();
    } else if (c != '\r' || quoted) {
      row.back() += c;
    }
  }
  if (quoted) return Invalid("a quote is not closed", "ncu's CSV");
  text.remove_prefix(std::min(text.size(), i + 1));
  return row;
}

/// "1,234.5" → 1234.5
std::optional<double> Number(std::string cell) {
  std::erase(cell, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || error != std::errc{} || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

/// ncu scales units; counters are in bytes and ns.
double FactorOf(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, double>, 13> kFactors = {{
      {"Kbyte", 1e3},
      {"Mbyte", 1e6},
      {"Gbyte", 1e9},
      {"Tbyte", 1e12},
      {"usecond", 1e3},
      {"us", 1e3},
      {"msecond", 1e6},
      {"ms", 1e6},
      {"second", 1e9},
      {"s", 1e9},
      {"nsecond", 1},
      {"ns", 1},
      {"Kbyte/block", 1e3},
  }};
  const auto found = std::ranges::find(kFactors, unit, &std::pair<std::string_view, double>::first);
  return found == kFactors.end() ? 1 : found->second;
}

class Table {
 public:
  explicit Table(Row header) : header_(std::move(header)) {}

  bool Has(std::string_view column) const {
    return std::ranges::find(header_, column) != header_.end();
  }
  std::string At(const Row& row, std::string_view column) const {
    const auto found = std::ranges::find(header_, column);
    const auto at = static_cast<size_t>(found - header_.begin());
    return found != header_.end() && at < row.size() ? row[at] : "";
  }
  const Row& header() const { return header_; }

 private:
  Row header_;
};

/// ncu's details page calls metrics by labels, unless it is told `--print-metric-name name`.
std::string MetricOfLabel(const std::string& label) {
  static const std::map<std::string, std::string, std::less<>> kMetrics = {
      {"Duration", "gpu__time_duration.sum"},
      {"Grid Size", "launch__grid_size"},
      {"Block Size", "launch__block_size"},
      {"Registers Per Thread", "launch__registers_per_thread"},
      {"Waves Per SM", "launch__waves_per_multiprocessor"},
      {"Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"},
      {"Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"},
      {"DRAM Throughput", "dram__throughput.avg.pct_of_peak_sustained_elapsed"},
      {"L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"},
      {"Executed Instructions", "smsp__inst_executed.sum"},
      {"Issue Slots Busy", "smsp__issue_active.avg.pct_of_peak_sustained_active"},
      {"Avg. Active Threads Per Warp", "smsp__thread_inst_executed_per_inst_executed.ratio"},
  };
  const auto found = kMetrics.find(label);
  return found == kMetrics.end() ? label : found->second;
}

/// A launch with its metrics in base units.
struct RawLaunch {
  std::string kernel;
  Metrics metrics;
  std::vector<NcuRule> rules;

  void Add(const std::string& metric, const std::string& unit, const std::string& cell) {
    if (const auto value = Number(cell)) metrics[MetricOfLabel(metric)] = *value * FactorOf(unit);
  }
};

std::vector<MeasuredLaunch> Translated(std::vector<RawLaunch> raw) {
  std::vector<MeasuredLaunch> launches;
  for (RawLaunch& one : raw)
    launches.push_back(
        {std::move(one.kernel), MeasuredCounters(one.metrics), std::move(one.rules)});
  return launches;
}

/// Launches by the row's id, or kernels by name where rows have none.
class Launches {
 public:
  RawLaunch& Of(const Table& table, const Row& row) {
    const std::string kernel = table.At(row, "Kernel Name");
    const std::string key = table.Has("ID") ? table.At(row, "ID") : kernel;
    const auto [at, is_new] = index_.emplace(key, all_.size());
    if (is_new) all_.push_back({kernel, {}, {}});
    return all_[at->second];
  }
  std::vector<RawLaunch> Take() { return std::move(all_); }

 private:
  std::map<std::string, size_t> index_;
  std::vector<RawLaunch> all_;
};

Result<std::vector<RawLaunch>> ReadRows(const Table& table, std::string_view text) {
  const bool summary = table.Has("Average");
  Launches launches;
  while (!text.empty()) {
    ATUNNER_TRY(const Row row, TakeRow(text));
    if (row.size() < 2) continue;
    RawLaunch& launch = launches.Of(table, row);
    launch.Add(table.At(row, "Metric Name"), table.At(row, "Metric Unit"),
               table.At(row, summary ? "Average" : "Metric Value"));
    const std::string rule = table.At(row, "Rule Name");
    if (!rule.empty())
      launch.rules.push_back({rule, table.At(row, "Rule Description"),
                              Number(table.At(row, "Estimated Speedup")).value_or(0)});
  }
  return launches.Take();
}

Result<std::vector<RawLaunch>> ReadWide(const Table& table, std::string_view text) {
  ATUNNER_TRY(const Row units, TakeRow(text));
  std::vector<RawLaunch> launches;
  while (!text.empty()) {
    ATUNNER_TRY(const Row row, TakeRow(text));
    if (row.size() < 2) continue;
    RawLaunch launch{table.At(row, "Kernel Name"), {}, {}};
    for (size_t i = 0; i < std::min(row.size(), table.header().size()); ++i)
      launch.Add(table.header()[i], i < units.size() ? units[i] : "", row[i]);
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace

Result<std::vector<MeasuredLaunch>> ParseNcuCsv(std::string_view text) {
  while (!text.empty()) {
    std::string_view rest = text;
    const std::string_view line = TakeLine(rest);
    if (line.find("\"Kernel Name\"") == std::string_view::npos) {
      text = rest;
      continue;
    }
    ATUNNER_TRY(const Row header, TakeRow(text));
    const Table table(header);
    ATUNNER_TRY(auto launches,
                table.Has("Metric Name") ? ReadRows(table, text) : ReadWide(table, text));
    return Translated(std::move(launches));
  }
  return Invalid("there is no header with \"Kernel Name\"", "ncu's CSV",
                 "record it by: ncu --csv --page raw ./app > counters.csv");
}

}  // namespace atunner::evidence
