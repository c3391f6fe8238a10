#include "atunner/recognition/hypothesis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "atunner/recognition/kinds.h"

namespace atunner::recognition {
namespace {

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

bool IsNarrow(DType dtype) { return IsFloat(dtype) && SizeOf(dtype) < 4; }

}  // namespace

const BufferFact* Facts::Output() const {
  const auto written = [](const BufferFact& buffer) { return buffer.written; };
  if (std::ranges::count_if(buffers, written) != 1) return nullptr;
  return &*std::ranges::find_if(buffers, written);
}

std::vector<const BufferFact*> Facts::Inputs() const {
  std::vector<const BufferFact*> inputs;
  for (const BufferFact& buffer : buffers) {
    if (!buffer.written && buffer.has_input && IsFloat(buffer.dtype)) inputs.push_back(&buffer);
  }
  return inputs;
}

std::string TypeText(DType dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{}[{}]", Name(dtype), fmt::join(shape, ", "));
}

std::string NumberText(double value) { return fmt::format("({:.17g})", value); }

HypothesisWriter::HypothesisWriter(std::string name, std::string form) {
  made_.name = std::move(name);
  made_.form = std::move(form);
  made_.graph = "graph recognised\n";
}

std::string HypothesisWriter::Input(const BufferFact& buffer, const std::vector<int64_t>& shape) {
  const std::string tensor = fmt::format("t{}", made_.names.size());
  made_.names[tensor] = buffer.name;
  made_.graph += fmt::format("input {}: {}\n", tensor, TypeText(buffer.dtype, shape));
  return tensor;
}

std::string HypothesisWriter::Line(const std::string& value) {
  std::string name = fmt::format("v{}", lines_++);
  made_.graph += fmt::format("{} = {}\n", name, value);
  return name;
}

std::string HypothesisWriter::Wide(const std::string& value, const BufferFact& buffer) {
  return IsNarrow(buffer.dtype) ? Line(fmt::format("cast({}, float32)", value)) : value;
}

Hypothesis HypothesisWriter::Output(const BufferFact& buffer, const std::string& value) && {
  made_.graph += fmt::format("y = cast({}, {})\noutput y\n", value, Name(buffer.dtype));
  made_.names["y"] = buffer.name;
  return std::move(made_);
}

std::vector<Epilogue> EpiloguesOf(const Facts& facts) {
  std::vector<Epilogue> scales{{"{v}", "", false}}, all;
  for (const FactorFact& factor : facts.factors) {
    const std::string number = NumberText(factor.value);
    scales.push_back({"{v} * " + number, " times " + factor.name, false});
    scales.push_back({"{v} / " + number, " over " + factor.name, false});
  }
  all = scales;
  if (!facts.Output()->has_input) return all;
  for (const Epilogue& scale : scales) {
    all.push_back({scale.text + " + {c}", scale.form + " added", true});
    for (const FactorFact& factor : facts.factors)
      all.push_back({scale.text + " + {c} * " + NumberText(factor.value),
                     scale.form + " added to old times " + factor.name, true});
  }
  return all;
}

Hypothesis Finish(HypothesisWriter writer, const Facts& facts, const std::string& value,
                  const Epilogue& epilogue, const std::vector<int64_t>& shape) {
  const BufferFact& output = *facts.Output();
  std::string text = Replaced(epilogue.text, "{v}", value);
  if (epilogue.reads_output)
    text = Replaced(text, "{c}", writer.Wide(writer.Input(output, shape), output));
  return std::move(writer).Output(output, text == value ? value : writer.Line(text));
}

std::vector<Hypothesis> AllHypotheses(const Facts& facts) {
  const BufferFact* output = facts.Output();
  if (output == nullptr) return {};
  std::vector<Hypothesis> all;
  for (const auto make : {ProductHypotheses, LayoutHypotheses, RowHypotheses, AttentionHypotheses,
                          ConvolutionHypotheses, PoolingHypotheses})
    std::ranges::move(make(facts), std::back_inserter(all));
  return all;
}

}  // namespace atunner::recognition
