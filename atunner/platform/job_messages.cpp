#include "atunner/platform/job_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "atunner/http/url.h"
#include "atunner/model/json/json.h"
#include "atunner/platform/job_files.h"

namespace atunner::platform {
namespace {

constexpr std::array<std::string_view, 3> kLevels = {"high", "normal", "low"};
constexpr std::string_view kAny = "any";

std::string_view LevelOf(int priority) { return kLevels[priority > 0 ? 0 : priority == 0 ? 1 : 2]; }

/// PercentEncode, and dots, which divide subjects.
std::string Encoded(const std::string& text) {
  std::string encoded;
  for (const char c : http::PercentEncode(text)) {
    if (c == '.')
      encoded += "%2E";
    else
      encoded += c;
  }
  return encoded;
}

std::string ClassOf(const queue::Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", Encoded(name), Encoded(value));
  return text.empty() ? std::string(kAny) : text;
}

/// The labels of a class; nullopt for another text.
std::optional<queue::Labels> LabelsOfClass(std::string_view text) {
  queue::Labels labels;
  if (text == kAny) return labels;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto name = http::PercentDecode(one.substr(0, equals), false);
    const auto value = http::PercentDecode(one.substr(equals + 1), false);
    if (!name || !value) return std::nullopt;
    labels[*name] = *value;
  }
  return labels;
}

/// Where a worker looks first: level, then the number of labels, most first, then the name.
using Rank = std::tuple<size_t, size_t, std::string>;

/// nullopt for a class that a worker with `labels` cannot serve.
std::optional<Rank> RankOf(const queue::Labels& labels, const std::string& consumer) {
  const size_t dash = consumer.find('-');
  const auto level = std::ranges::find(kLevels, std::string_view(consumer).substr(0, dash));
  if (dash == std::string::npos || level == kLevels.end()) return std::nullopt;
  const auto asked = LabelsOfClass(std::string_view(consumer).substr(dash + 1));
  if (!asked) return std::nullopt;
  const bool has_all = std::ranges::all_of(*asked, [&](const auto& one) {
    const auto found = labels.find(one.first);
    return found != labels.end() && found->second == one.second;
  });
  if (!has_all) return std::nullopt;
  return Rank{static_cast<size_t>(level - kLevels.begin()), SIZE_MAX - asked->size(), consumer};
}

}  // namespace

std::string ConsumerOf(const queue::Job& job) {
  return fmt::format("{}-{}", LevelOf(job.priority), ClassOf(job.labels));
}

std::vector<std::string> ConsumersFor(const queue::Labels& labels,
                                      std::vector<std::string> consumers) {
  std::vector<Rank> ranks;
  for (const std::string& one : consumers) {
    if (auto rank = RankOf(labels, one)) ranks.push_back(*std::move(rank));
  }
  std::ranges::sort(ranks);
  consumers.clear();
  for (Rank& one : ranks) consumers.push_back(std::get<2>(std::move(one)));
  return consumers;
}

std::string SubjectOf(const std::string& stream, const queue::Job& job) {
  return fmt::format("{}.jobs.{}.{}.{}", stream, ConsumerOf(job), job.id, job.version);
}

std::string SubjectsOf(const std::string& stream, const std::string& consumer) {
  return fmt::format("{}.jobs.{}.>", stream, consumer);
}

std::optional<JobSubject> ParseSubject(const std::string& stream, std::string_view subject) {
  const std::string prefix = stream + ".jobs.";
  if (!subject.starts_with(prefix)) return std::nullopt;
  subject.remove_prefix(prefix.size());
  const size_t first = subject.find('.');
  const size_t second = subject.rfind('.');
  if (first == std::string_view::npos || first == second) return std::nullopt;
  JobSubject parsed{std::string(subject.substr(0, first)),
                    std::string(subject.substr(first + 1, second - first - 1)), 0};
  const char* const end = subject.data() + subject.size();
  const auto [at, error] = std::from_chars(subject.data() + second + 1, end, parsed.version);
  if (error != std::errc() || at != end || !IsSafeId(parsed.job)) return std::nullopt;
  return parsed;
}

std::string ToText(const JobMessage& message) {
  return DumpJson({{"job", message.job}, {"server", message.server}});
}

Result<JobMessage> ParseJobMessage(const std::string& text) {
  ATUNNER_TRY(const Json json, ParseJson(text, "message"));
  if (!json.is_object()) return Invalid("is no object", "message");
  JobMessage message;
  for (const auto& [name, to] : {std::pair{"job", &message.job}, {"server", &message.server}}) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string()) return Invalid("is missing", name);
    *to = found->get<std::string>();
  }
  if (!IsSafeId(message.job)) return Invalid("is no id of a job", "job");
  return message;
}

}  // namespace atunner::platform
